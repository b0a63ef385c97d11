/* rates.c: how many a second. See rates.h. */
#include "background/rates.h"

#include "ckv.h"
#include "server/clock.h"

#define INTERVAL_US 1000000
#define WEIGHT      0.3 /* of the newest interval, in what is shown */

static struct {
    uint64_t at_us;
    ckv_stats counted;
    uint64_t encoded;
    rates shown;
} last;

static void mix(double *shown, uint64_t new, uint64_t old, double seconds) {
    *shown += WEIGHT * ((double)(new - old) / seconds - *shown);
    if (*shown < 0.01) *shown = 0;
}

void rates_tick(void) {
    uint64_t now_us = clock_monotonic_us();
    if (now_us - last.at_us < INTERVAL_US) return;
    double seconds = (double)(now_us - last.at_us) / 1e6;
    mix(&last.shown.expired, ckv.stats.expired, last.counted.expired, seconds);
    mix(&last.shown.evicted, ckv.stats.evicted, last.counted.evicted, seconds);
    mix(&last.shown.encoded, ckv.shared.young.settled, last.encoded, seconds);
    last.encoded = ckv.shared.young.settled;
    last.at_us = now_us;
    last.counted = ckv.stats;
}

rates rates_now(void) {
    return last.shown;
}
