/* pace.c: see pace.h. */
#include "base/pace.h"
#include "base/thread_local.h"

#include <stdint.h>
#include <time.h>

#define SLICE_NS  1000000 /* of computing, before it sleeps */
#define SECOND_NS 1000000000ULL

static const atomic_uint whole = 100;

static THREAD_LOCAL struct {
    const atomic_uint *percent;
    uint64_t woke_ns;
} pace = {.percent = &whole};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void pace_follow(const atomic_uint *percent) {
    pace.percent = percent;
    pace.woke_ns = now_ns();
}

void pace_keep(void) {
    unsigned percent = atomic_load_explicit(pace.percent, memory_order_relaxed);
    if (percent == 100) return;
    uint64_t computed_ns = now_ns() - pace.woke_ns;
    if (computed_ns < SLICE_NS) return;
    uint64_t sleep_ns = computed_ns * (100 - percent) / percent;
    struct timespec sleep = {(time_t)(sleep_ns / SECOND_NS), (long)(sleep_ns % SECOND_NS)};
    nanosleep(&sleep, NULL);
    pace.woke_ns = now_ns();
}
