/* loop.c: see loop.h. */
#include "server/loop.h"

static loop_run *steps[LOOP_STEPS];
static bool listening;

static void on_loop(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e, (void)data;
    if (sub != REDISMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP) return;
    for (int i = 0; i < LOOP_STEPS; i++)
        if (steps[i]) steps[i](ctx);
}

static void listen(bool wanted) {
    if (listening == wanted) return;
    RedisModule_SubscribeToServerEvent(ckv.ctx, RedisModuleEvent_EventLoop,
                                       wanted ? on_loop : NULL);
    listening = wanted;
}

void loop_set(loop_step step, loop_run *run) {
    steps[step] = run;
    if (run) listen(true);
}

void loop_rest(void) {
    for (int i = 0; i < LOOP_STEPS; i++)
        if (steps[i]) return;
    listen(false);
}
