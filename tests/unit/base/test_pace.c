/* The pace of a thread: how long it sleeps for what it computes. Other programs may take the core
 * at any moment, so nothing here depends on how long something really takes. */
#include "../test.h"
#include "base/pace.h"

#include <stdbool.h>
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
    double woke_cpu;   /* this thread's clock at the end of the last sleep */
    double asked, cpu; /* in sum: to sleep for, computed; s */
    int long_slices;
    double sleep_for; /* each second that it computed, at the most */
} seen;

static atomic_uint pace;

static void woken(void) {
    seen.woke_cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
}

/* In place of the system's, for pace_keep(). */
int nanosleep(const struct timespec *wanted, struct timespec *left) {
    (void)left;
    double asked = (double)wanted->tv_sec + (double)wanted->tv_nsec / 1e9;
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - seen.woke_cpu;
    CHECK(asked <= cpu * seen.sleep_for * 1.0001); /* nothing counts but what it computes */
    CHECK(asked >= SLICE * seen.sleep_for * 0.99);
    seen.sleeps++;
    seen.asked += asked;
    seen.cpu += cpu;
    seen.long_slices += cpu > 2 * SLICE;
    clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, NULL);
    woken();
    return 0;
}

/* As where the process is stopped, or others have the core. */
static void is_kept_from_computing(void) {
    const struct timespec some = {0, 5000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &some, NULL);
}

static void keeps(unsigned percent, bool alone) {
    memset(&seen, 0, sizeof seen);
    seen.sleep_for = (100.0 - percent) / percent;
    woken();
    atomic_store(&pace, percent);
    pace_follow(&pace);
    while (seen.sleeps < SLEEPS) {
        int sleeps = seen.sleeps;
        if (!alone) is_kept_from_computing();
        while (seen.sleeps == sleeps) pace_keep();
    }
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
    keeps(50, true);
    keeps(33, true);
    keeps(20, true);
    keeps(33, false);
    never_sleeps();
    return test_report("pace");
}
