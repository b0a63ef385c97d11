/* machine.c: the machine that the server runs on. See machine.h. */
#include "server/machine.h"

#include "server/clock.h"

#include <stdio.h>

#define BELIEVED_US 1000000
#define KEPT_SHARE  10 /* one in so many bytes */

static int64_t read_spare(void) {
    char line[128];
    long long kb, total = -1, available = -1;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemTotal: %lld kB", &kb) == 1) total = kb;
        if (sscanf(line, "MemAvailable: %lld kB", &kb) == 1) available = kb;
    }
    if (f) fclose(f);
    return total < 0 || available < 0 ? INT64_MAX : (available - total / KEPT_SHARE) * 1024;
}

int64_t machine_spare_bytes(void) {
    static int64_t spare;
    static uint64_t read_us;
    uint64_t now_us = clock_monotonic_us();
    if (read_us && now_us - read_us < BELIEVED_US) return spare;
    read_us = now_us;
    spare = read_spare();
    return spare;
}
