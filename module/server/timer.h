/*
 * timer.h: what is done between commands, again and again.
 *
 * The server's timers go by the wall clock: set back by an hour, they would keep us for that long,
 * or the server if one runs just then. These come by then, too, and let it go on.
 */
#ifndef CKV_TIMER_H
#define CKV_TIMER_H

#include "redismodule.h"

#include <stdint.h>

typedef struct timer {
    RedisModuleTimerProc run;
    RedisModuleTimerID id; /* the server's; 0: it has none */
    uint64_t due_us;       /* by the clock for measuring; 0: it is not set */
    mstime_t due_ms;       /* by the server's clock */
    struct timer *next;
} timer;

/* Makes a timer known, which lives as long as the module; it is not set. */
void timer_register(RedisModuleCtx *ctx, timer *t, RedisModuleTimerProc run);

/* Has it run once, so many ms from now, and not when it was to run before. See also
 * LOOP_FIRST_MS. */
void timer_set(RedisModuleCtx *ctx, timer *t, int wait_ms);

#endif
