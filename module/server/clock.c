/* clock.c: what time it is. See clock.h. */
#include "server/clock.h"

#include "redismodule.h"
#include "server/server_info.h"
#include "server/within.h"

#include <time.h>

#define BELIEVED_US 100

/* The server's own time, which stands still while a transaction or a script runs. Redis 7.0 tells
 * it in INFO only. */
static int64_t cached_ms_of_info(void) {
    uint64_t us = server_info_number(NULL, "server", "server_time_usec");
    return us > 0 ? (int64_t)(us / 1000) : RedisModule_Milliseconds();
}

/* No API says where one transaction ends and the next begins, so an answer is believed for so long
 * that asking takes little of a long one's time. */
static int64_t standing_ms(void) {
    static uint64_t asked_us;
    static int64_t answer_ms;
    uint64_t now_us = clock_monotonic_us();
    if (now_us - asked_us < BELIEVED_US) return answer_ms;
    answer_ms = cached_ms_of_info();
    asked_us = clock_monotonic_us();
    return answer_ms;
}

int64_t clock_now_ms(void) {
    if (RedisModule_CachedMicroseconds) return RedisModule_CachedMicroseconds() / 1000;
    return within_exec_or_script() ? standing_ms() : RedisModule_Milliseconds();
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
