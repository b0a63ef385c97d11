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

/* Never by the timer itself: one that is due at once would be followed by the next for ever. */
static void look_behind_this_round(void) {
    if (!asked || armed) return;
    RedisModule_CreateTimer(ckv.ctx, LOOP_FIRST_MS, on_timer, NULL);
    armed = true;
}

/* What ends it may come in this round, and be no command: in a cluster the news that another node
 * has taken over a slot. */
static void on_loop(RedisModuleCtx *ctx) {
    pause_look(ctx);
    look_behind_this_round();
}

/* The command that asks, or this question, may end it. */
bool pause_holds(void) {
    look_behind_this_round();
    return RedisModule_AvoidReplicaTraffic();
}

void pause_listen(pause_end *told) {
    listener = told;
}

void pause_at_end(void) {
    if (!listener) return;
    asked = true;
    loop_set(LOOP_PAUSE, on_loop);
}
