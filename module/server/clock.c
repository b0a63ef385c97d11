/* clock.c: what time it is. See clock.h. */
#include "server/clock.h"

#include "redismodule.h"

#include <time.h>

int64_t clock_now_ms(void) {
    /* Redis 7.2 and later: one time for a whole command or script. */
    if (RedisModule_CachedMicroseconds) return RedisModule_CachedMicroseconds() / 1000;
    return RedisModule_Milliseconds();
}

uint64_t clock_monotonic_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}
