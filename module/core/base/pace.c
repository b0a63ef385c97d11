/* pace.c: see pace.h. */
#include "base/pace.h"

#include <stdint.h>
#include <time.h>

#define SLICE_NS  1000000 /* of computing, before it sleeps */
#define SECOND_NS 1000000000ULL

static _Thread_local struct {
    unsigned sleep_percent; /* of the time that it computed; 0: never */
    uint64_t woke_ns;
} pace;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void pace_set(unsigned percent) {
    pace.sleep_percent = 100 * (100 - percent) / percent;
    pace.woke_ns = now_ns();
}

void pace_keep(void) {
    if (pace.sleep_percent == 0) return;
    uint64_t computed_ns = now_ns() - pace.woke_ns;
    if (computed_ns < SLICE_NS) return;
    uint64_t sleep_ns = computed_ns * pace.sleep_percent / 100;
    struct timespec sleep = {(time_t)(sleep_ns / SECOND_NS), (long)(sleep_ns % SECOND_NS)};
    nanosleep(&sleep, NULL);
    pace.woke_ns = now_ns();
}
