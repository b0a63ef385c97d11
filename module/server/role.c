/* role.c: what this server may decide by itself. See role.h. */
#include "server/role.h"

#include "ckv.h"
#include "server/acl.h"
#include "server/pause.h"
#include "server/settings.h"
#include "server/within.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define TICKS_MS 4 /* two ticks of the times that are kept */

#define LISTENERS_MAX 5

static role_changed *listeners[LISTENERS_MAX];
static int listening;

static void on_change(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)data;
    for (int i = 0; i < listening; i++)
        listeners[i](sub == REDISMODULE_EVENT_REPLROLECHANGED_NOW_REPLICA);
}

bool role_start(RedisModuleCtx *ctx) {
    return RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ReplicationRoleChanged,
                                              on_change) == REDISMODULE_OK;
}

void role_listen(role_changed *told) {
    assert(listening < LISTENERS_MAX);
    listeners[listening++] = told;
}

/* As nodes.conf has it. Valkey's flags say so only when its first tick for the cluster has come,
 * and timers that a loaded file has delayed come before. */
static bool is_replica_by_cluster(void) {
    char id[REDISMODULE_NODE_ID_LEN + 1] = "";
    int flags = 0;
    memcpy(id, RedisModule_GetMyClusterID(), REDISMODULE_NODE_ID_LEN);
    return RedisModule_GetClusterNodeInfo(ckv.ctx, id, NULL, NULL, NULL, &flags) ==
               REDISMODULE_OK &&
           flags & REDISMODULE_NODE_SLAVE;
}

int role_flags(RedisModuleCtx *ctx) {
    static bool told; /* whether it follows */
    int flags = RedisModule_GetContextFlags(ctx), slave = REDISMODULE_CTX_FLAGS_SLAVE;
    if (!told)
        told =
            !(flags & REDISMODULE_CTX_FLAGS_CLUSTER) || flags & slave || !is_replica_by_cluster();
    return told ? flags : flags | slave;
}

bool role_loads(RedisModuleCtx *ctx) {
    int flags = RedisModule_GetContextFlags(ctx);
    return (flags & REDISMODULE_CTX_FLAGS_LOADING) &&
           !(flags & REDISMODULE_CTX_FLAGS_ASYNC_LOADING);
}

bool role_loads_any(RedisModuleCtx *ctx) {
    int loads = REDISMODULE_CTX_FLAGS_LOADING | REDISMODULE_CTX_FLAGS_ASYNC_LOADING;
    return RedisModule_GetContextFlags(ctx) & loads;
}

bool role_repeats(RedisModuleCtx *ctx) {
    return RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_REPLICATED || role_loads(ctx);
}

bool role_follows(RedisModuleCtx *ctx) {
    return role_flags(ctx) & REDISMODULE_CTX_FLAGS_SLAVE || role_repeats(ctx);
}

int64_t role_seen_from(RedisModuleCtx *ctx, int64_t at_ms, int64_t now_ms) {
    bool ahead = at_ms <= now_ms && at_ms > TICKS_MS && role_repeats(ctx) &&
                 RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_SLAVE;
    return ahead ? at_ms - TICKS_MS : now_ms;
}

/* Who calls is none of the server's clients, and stands for nobody unless he says so. What a script
 * calls is sent by none of them either, and as him who has called the script. (Valkey 9 counts who
 * is under way among its clients when it is asked for more than the name.) */
bool role_is_called(RedisModuleCtx *ctx) {
    if (!acl_any_user(ctx)) return true;
    if (within_script()) return false;
    errno = 0;
    RedisModuleString *user = RedisModule_GetClientUserNameById(ctx, RedisModule_GetClientId(ctx));
    if (user) RedisModule_FreeString(ctx, user);
    return !user && errno == ENOENT;
}

bool role_may_expire(RedisModuleCtx *ctx) {
    return !role_follows(ctx) && !settings_import_mode() && !pause_holds();
}

bool role_keeps_expired(RedisModuleCtx *ctx) {
    int flags = role_flags(ctx);
    int mirror = REDISMODULE_CTX_FLAGS_SLAVE | REDISMODULE_CTX_FLAGS_READONLY;
    bool kept = (flags & mirror) == mirror || settings_import_mode() || pause_holds();
    return kept && !role_repeats(ctx);
}

bool role_write_primarys(void) {
    int flags = RedisModule_GetContextFlags(NULL);
    bool writable =
        (flags & REDISMODULE_CTX_FLAGS_SLAVE) && !(flags & REDISMODULE_CTX_FLAGS_READONLY);
    if (writable) settings_set(ckv.ctx, "replica-read-only", "yes");
    return writable;
}

void role_write_own(bool again) {
    if (again) settings_set(ckv.ctx, "replica-read-only", "no");
}

bool role_mirrors(void) {
    int mirrors = REDISMODULE_CTX_FLAGS_SLAVE | REDISMODULE_CTX_FLAGS_CLUSTER;
    return (role_flags(NULL) & mirrors) == mirrors;
}
