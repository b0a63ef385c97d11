/* child.c: whether a child process is at work. See child.h. */
#include "server/child.h"

#include "server/feed.h"

static bool at_work;

static void on_fork(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)data;
    at_work = sub == REDISMODULE_SUBEVENT_FORK_CHILD_BORN;
    if (at_work) feed_expect();
}

bool child_start(RedisModuleCtx *ctx) {
    return RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ForkChild, on_fork) ==
           REDISMODULE_OK;
}

bool child_at_work(void) {
    return at_work;
}
