/* rate.c: see rate.h. */
#include "rate.h"

#include "progress.h"

#include <time.h>

void rate_begin(rate *r, double per_second) {
    *r = (rate){.began = now_seconds(), .per_second = per_second};
}

void rate_keep(rate *r, double more) {
    r->keys += more;
    if (r->per_second == 0) return;
    double wait = r->began + r->keys / r->per_second - now_seconds();
    if (wait <= 0) {
        r->began -= wait; /* what took longer is not made up for */
        return;
    }
    struct timespec sleep = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
    nanosleep(&sleep, NULL);
}
