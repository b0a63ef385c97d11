/* machine.c: the machine that the server runs on. See machine.h. */
#include "server/machine.h"

#include "server/clock.h"

#include <stdbool.h>
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

#define GROUP_MAX 512 /* bytes of a group's name */

/* The server's control group (v2), which may be a container's or a service's: "/a/b"; "": none. */
static void read_group(char own[GROUP_MAX]) {
    char line[GROUP_MAX];
    FILE *f = fopen("/proc/self/cgroup", "r");
    own[0] = '\0';
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "0::%511[^\n]", own) == 1) break;
    if (f) fclose(f);
}

/* The one that holds it, whose limit holds for all within; false: there is none. */
static bool to_parent(char group[GROUP_MAX]) {
    char *last = strrchr(group, '/');
    if (!last) return false;
    *last = '\0';
    return true;
}

/* Of a file of a group. */
static long long read_of_group(const char *group, const char *file, const char *name) {
    char path[GROUP_MAX + 64];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, file);
    return read_number(path, name);
}

static uint64_t read_bytes(void) {
    char group[GROUP_MAX];
    long long least = read_number("/proc/meminfo", "MemTotal:") * 1024;
    read_group(group);
    do {
        long long most = read_of_group(group, "memory.max", "");
        if (most >= 0 && (least < 0 || most < least)) least = most;
    } while (to_parent(group));
    return least < 0 ? 0 : (uint64_t)least;
}

uint64_t machine_bytes(void) {
    static uint64_t bytes;
    static bool read;
    if (!read) bytes = read_bytes();
    read = true;
    return bytes;
}

static int64_t spare_of_machine(void) {
    long long total = read_number("/proc/meminfo", "MemTotal:");
    long long available = read_number("/proc/meminfo", "MemAvailable:");
    return total < 0 || available < 0 ? INT64_MAX : (available - total / KEPT_SHARE) * 1024;
}

/* Files that were read or written count as used there, and go when memory is wanted. */
static int64_t spare_of_group(const char *group) {
    long long most = read_of_group(group, "memory.max", "");
    long long used = most < 0 ? -1 : read_of_group(group, "memory.current", "");
    if (used < 0) return INT64_MAX;
    long long files = read_of_group(group, "memory.stat", "inactive_file ");
    return most - most / KEPT_SHARE - used + (files > 0 ? files : 0);
}

static int64_t read_spare(void) {
    char group[GROUP_MAX];
    int64_t least = spare_of_machine();
    read_group(group);
    do {
        int64_t spare = spare_of_group(group);
        if (spare < least) least = spare;
    } while (to_parent(group));
    return least;
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
