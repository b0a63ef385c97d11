/* child.c: whether a child process is at work. See child.h. */
#include "server/child.h"

#include "server/feed.h"

static bool at_work;
static child_listener *listener;

static void on_fork(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e, (void)data;
    bool born = sub == REDISMODULE_SUBEVENT_FORK_CHILD_BORN;
    bool any = RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_ACTIVE_CHILD;
    /* One in which a script is debugged counts for nothing, and nobody says when it has ended. */
    if (born && !any) return;
    at_work = born;
    if (at_work) feed_expect(ctx);
    listener(ctx, at_work);
}

bool child_start(RedisModuleCtx *ctx, child_listener *told) {
    listener = told;
    return RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ForkChild, on_fork) ==
           REDISMODULE_OK;
}

bool child_at_work(void) {
    return at_work;
}
