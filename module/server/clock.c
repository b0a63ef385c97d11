/* clock.c: what time it is. See clock.h. */
#include "server/clock.h"

#include "redismodule.h"

#include <time.h>

int64_t clock_now_ms(void) {
    /* Redis 7.2 and later: one time for a whole command or script. */
    if (RedisModule_CachedMicroseconds) return RedisModule_CachedMicroseconds() / 1000;
    return RedisModule_Milliseconds();
}

static uint64_t read_us(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_monotonic_us(void) {
    return read_us(CLOCK_MONOTONIC);
}

uint64_t clock_thread_us(void) {
    return read_us(CLOCK_THREAD_CPUTIME_ID);
}
