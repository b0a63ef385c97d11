/* machine.c: the machine that the server runs on. See machine.h. */
#include "server/machine.h"

#include "server/clock.h"

#include <stdio.h>
#include <string.h>

/* Strings that move out take some 10 MB meanwhile, which a small container's tenth must hold. */
#define BELIEVED_US 100000
#define KEPT_SHARE  10 /* one in so many bytes */

/* The number behind a name in a file of such lines; -1: it is not there, or is none. */
static long long read_number(const char *path, const char *name) {
    char line[128];
    long long number = -1;
    size_t len = strlen(name);
    FILE *f = fopen(path, "r");
    while (f && number < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, name, len)) sscanf(line + len, "%lld", &number);
    if (f) fclose(f);
    return number;
}

/* Of a file of the server's control group (v2), which may be a container's or a service's. */
static long long read_of_group(const char *file, const char *name) {
    char line[512], path[600], own[512] = "/";
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "0::%511[^\n]", own) == 1) break;
    if (f) fclose(f);
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", own, file);
    return read_number(path, name);
}

uint64_t machine_bytes(void) {
    static uint64_t bytes;
    if (bytes) return bytes;
    long long all = read_number("/proc/meminfo", "MemTotal:") * 1024;
    long long most = read_of_group("memory.max", "");
    long long least = most >= 0 && (all < 0 || most < all) ? most : all;
    return bytes = least < 0 ? 0 : (uint64_t)least;
}

static int64_t spare_of_machine(void) {
    long long total = read_number("/proc/meminfo", "MemTotal:");
    long long available = read_number("/proc/meminfo", "MemAvailable:");
    return total < 0 || available < 0 ? INT64_MAX : (available - total / KEPT_SHARE) * 1024;
}

/* Files that were read or written count as used there, and go when memory is wanted. */
static int64_t spare_of_group(void) {
    long long most = read_of_group("memory.max", ""), used = read_of_group("memory.current", "");
    if (most < 0 || used < 0) return INT64_MAX;
    long long files = read_of_group("memory.stat", "inactive_file ");
    return most - most / KEPT_SHARE - used + (files > 0 ? files : 0);
}

static int64_t read_spare(void) {
    int64_t machine = spare_of_machine(), group = spare_of_group();
    return machine < group ? machine : group;
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
