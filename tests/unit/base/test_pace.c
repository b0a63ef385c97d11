/* The pace of a thread: it sleeps as long as it has to, at the least. */
#include "base/pace.h"
#include "../test.h"

#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* How many times longer than computing it takes to compute for a while. */
static double slowed(double cpu_seconds) {
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    while (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu < cpu_seconds) pace_keep();
    return (seconds(CLOCK_MONOTONIC) - wall) / (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu);
}

int main(void) {
    pace_set(50);
    CHECK(slowed(0.05) > 1.8);
    pace_set(20);
    CHECK(slowed(0.02) > 4.5);
    return test_report("pace");
}
