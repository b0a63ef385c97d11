/* The pace of a thread: how long it sleeps for what it computes. Other programs may take the core
 * at any moment, so nothing here depends on how long something really takes. */
#include "../test.h"
#include "base/pace.h"

#include <string.h>
#include <time.h>

#define SLEEPS 25
/* Of the time that it computes before it sleeps, which pace.h promises; s. */
#define SLICE 0.001

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct {
    int sleeps;
    double woke, woke_cpu; /* the clocks at the end of the last sleep */
    double asked, cpu;     /* in sum: to sleep for, computed; s */
    int long_slices;
    double sleep_for; /* each second that it was awake, at the most */
} seen;

static atomic_uint pace;

static void woken(void) {
    seen.woke = seconds(CLOCK_MONOTONIC);
    seen.woke_cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
}

/* In place of the system's, for pace_keep(). */
int nanosleep(const struct timespec *wanted, struct timespec *left) {
    (void)left;
    double asked = (double)wanted->tv_sec + (double)wanted->tv_nsec / 1e9;
    double awake = seconds(CLOCK_MONOTONIC) - seen.woke;
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - seen.woke_cpu;
    CHECK(asked <= awake * seen.sleep_for * 1.0001); /* the sleep before does not count, either */
    CHECK(asked >= SLICE * seen.sleep_for * 0.99);
    seen.sleeps++;
    seen.asked += asked;
    seen.cpu += cpu;
    seen.long_slices += cpu > 2 * SLICE;
    clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, NULL);
    woken();
    return 0;
}

static void keeps(unsigned percent) {
    memset(&seen, 0, sizeof seen);
    seen.sleep_for = (100.0 - percent) / percent;
    woken();
    atomic_store(&pace, percent);
    pace_follow(&pace);
    while (seen.sleeps < SLEEPS) pace_keep();
    CHECK(seen.asked >= seen.cpu * seen.sleep_for * 0.95);
    CHECK(seen.long_slices <= SLEEPS / 2);
}

/* As it does from the moment that it is told to hurry. */
static void never_sleeps(void) {
    seen.sleeps = 0;
    atomic_store(&pace, 100);
    double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    while (seconds(CLOCK_THREAD_CPUTIME_ID) - start < 20 * SLICE) pace_keep();
    CHECK(seen.sleeps == 0);
}

int main(void) {
    keeps(50);
    keeps(33);
    keeps(20);
    never_sleeps();
    return test_report("pace");
}
