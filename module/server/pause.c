/* pause.c: see pause.h. */
#include "server/pause.h"

#include "server/loop.h"

static pause_end *at_end; /* NULL: nobody waits */
static bool armed;

void pause_look(RedisModuleCtx *ctx) {
    (void)ctx;
    if (!at_end || RedisModule_AvoidReplicaTraffic()) return;
    pause_end *end = at_end;
    at_end = NULL;
    loop_set(LOOP_PAUSE, NULL);
    end();
}

static void on_timer(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    armed = false;
    pause_look(ctx);
}

/* The command that asks, or this question, may end it. */
bool pause_holds(void) {
    if (at_end && !armed) {
        RedisModule_CreateTimer(ckv.ctx, LOOP_FIRST_MS, on_timer, NULL);
        armed = true;
    }
    return RedisModule_AvoidReplicaTraffic();
}

void pause_at_end(pause_end *end) {
    at_end = end;
    loop_set(LOOP_PAUSE, pause_look);
}
