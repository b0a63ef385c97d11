/* lull.c: see lull.h. */
#include "background/lull.h"

#include "ckv.h"
#include "server/clock.h"

#define LULL_US 3000000

bool lull(void) {
    static uint64_t seen, at_us; /* raw bytes written, and since when there are no more */
    uint64_t now_us = clock_monotonic_us();
    uint64_t written = codecs_written_bytes(&ckv.shared.codecs);
    if (seen != written) {
        seen = written;
        at_us = now_us;
    }
    return now_us - at_us >= LULL_US;
}
