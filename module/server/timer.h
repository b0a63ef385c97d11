/*
 * timer.h: what is done between commands, again and again.
 *
 * The server's timers go by the wall clock: set back by an hour, they would keep us for that long.
 * These come by then, too.
 */
#ifndef CKV_TIMER_H
#define CKV_TIMER_H

#include "redismodule.h"

#include <stdint.h>

typedef struct timer {
    RedisModuleTimerProc run;
    RedisModuleTimerID id;
    uint64_t due_us; /* by the clock for measuring; 0: it is not set */
    struct timer *next;
} timer;

/* Makes a timer known, which lives as long as the module; it is not set. */
void timer_register(RedisModuleCtx *ctx, timer *t, RedisModuleTimerProc run);

/* Has it run once, so many ms from now, and not when it was to run before. See also
 * LOOP_FIRST_MS. */
void timer_set(RedisModuleCtx *ctx, timer *t, int wait_ms);

#endif
