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
    uint64_t woke_ns;  /* in this thread's own time: what it waited for a core, or was stopped, */
    uint64_t until_ns; /* it did not compute; before that moment it can't have been a slice */
} pace = {.percent = &whole};

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void wake(void) {
    pace.woke_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    pace.until_ns = clock_ns(CLOCK_MONOTONIC) + SLICE_NS;
}

void pace_follow(const atomic_uint *percent) {
    pace.percent = percent;
    wake();
}

void pace_keep(void) {
    unsigned percent = atomic_load_explicit(pace.percent, memory_order_relaxed);
    if (percent == 100) return;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (now_ns < pace.until_ns) return;
    uint64_t computed_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - pace.woke_ns;
    if (computed_ns < SLICE_NS) {
        pace.until_ns = now_ns + SLICE_NS - computed_ns;
        return;
    }
    uint64_t sleep_ns = computed_ns * (100 - percent) / percent;
    struct timespec sleep = {(time_t)(sleep_ns / SECOND_NS), (long)(sleep_ns % SECOND_NS)};
    nanosleep(&sleep, NULL);
    wake();
}
