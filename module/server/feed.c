/* feed.c: whether anybody is fed with what is written. See feed.h. */
#include "server/feed.h"

#include "server/clock.h"

#define CHECK_EVERY_US 100000

static bool needed = true, replicas = true;
static uint64_t checked_us;

bool feed_needed(void) {
    return needed;
}

bool feed_replicas(void) {
    return replicas;
}

/* Whether a field of INFO's section is 0; not if there is no such field. */
static bool is_zero(RedisModuleServerInfoData *info, const char *field) {
    int error;
    return RedisModule_ServerInfoGetFieldUnsigned(info, field, &error) == 0 &&
           error == REDISMODULE_OK;
}

static bool replicas_possible(RedisModuleCtx *ctx) {
    /* In a cluster slots may be moving to another node, which INFO does not count as a replica. */
    if (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_CLUSTER) return true;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "replication");
    bool none = is_zero(info, "connected_slaves") && is_zero(info, "repl_backlog_active");
    RedisModule_FreeServerInfo(ctx, info);
    return !none;
}

void feed_expect(RedisModuleCtx *ctx) {
    needed = true;
    replicas = replicas_possible(ctx);
}

void feed_check(RedisModuleCtx *ctx) {
    uint64_t now_us = clock_monotonic_us();
    if (now_us - checked_us < CHECK_EVERY_US) return;
    checked_us = now_us;
    replicas = replicas_possible(ctx);
    int somebody = REDISMODULE_CTX_FLAGS_AOF | REDISMODULE_CTX_FLAGS_ACTIVE_CHILD |
                   REDISMODULE_CTX_FLAGS_SLAVE;
    needed = replicas || RedisModule_GetContextFlags(ctx) & somebody;
}
