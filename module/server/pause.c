/* pause.c: see pause.h. */
#include "server/pause.h"

#include "server/loop.h"

static pause_end *listener; /* NULL: nobody is to be told */
static bool asked;          /* to be told when nothing is held back any more */
static bool armed;

void pause_look(RedisModuleCtx *ctx) {
    (void)ctx;
    if (!asked || RedisModule_AvoidReplicaTraffic()) return;
    asked = false;
    loop_set(LOOP_PAUSE, NULL);
    listener();
}

static void on_timer(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    armed = false;
    pause_look(ctx);
}

/* The command that asks, or this question, may end it. */
bool pause_holds(void) {
    if (asked && !armed) {
        RedisModule_CreateTimer(ckv.ctx, LOOP_FIRST_MS, on_timer, NULL);
        armed = true;
    }
    return RedisModule_AvoidReplicaTraffic();
}

void pause_listen(pause_end *told) {
    listener = told;
}

void pause_at_end(void) {
    if (!listener) return;
    asked = true;
    loop_set(LOOP_PAUSE, pause_look);
}
