/* timer.c: what is done between commands. See timer.h. */
#include "server/timer.h"

#include "server/clock.h"
#include "server/pause.h"

#define LATE_US 200000

static timer *timers;

/* The server calls whoever is due by the time when it looked first, and looks no more: if the clock
 * has been set back since then, a timer that is set again is called again at once, and no command
 * runs until the clock has caught up. So it is left unset then, until it is late. */
static void run(RedisModuleCtx *ctx, void *data) {
    timer *t = data;
    t->id = 0;
    if (RedisModule_Milliseconds() < t->due_ms) return;
    t->due_us = 0;
    t->run(ctx, NULL);
}

void timer_set(RedisModuleCtx *ctx, timer *t, int wait_ms) {
    if (t->id) RedisModule_StopTimer(ctx, t->id, NULL);
    t->due_us = clock_monotonic_us() + (uint64_t)wait_ms * 1000;
    t->due_ms = RedisModule_Milliseconds() + wait_ms;
    t->id = RedisModule_CreateTimer(ctx, wait_ms, run, t);
}

static void on_server_cron(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e, (void)sub, (void)data;
    for (timer *t = timers; t; t = t->next)
        if (t->due_us && clock_monotonic_us() > t->due_us + LATE_US) timer_set(ctx, t, 1);
    pause_look(ctx);
}

void timer_register(RedisModuleCtx *ctx, timer *t, RedisModuleTimerProc proc) {
    if (!timers) RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_CronLoop, on_server_cron);
    *t = (timer){.run = proc, .next = timers};
    timers = t;
}
