/*
 * faults.c: a library between a server and libc (LD_PRELOAD), through which a test makes the clock
 * step, fork() and pthread_create() fail, and what the system says of itself (/proc, /sys) be
 * something else, by files of these names in the folder $CKV_FAULTS.root. What is to happen is in
 * the file that $CKV_FAULTS names, which the test writes to while the server runs:
 *
 *      [seconds to add to the clock, 8 bytes][fork() fails if not 0, 8 bytes][no threads, the same]
 *      [seconds to add to the clock that measures how long something takes, 8 bytes]
 *      [how often the first are added, 8 bytes; 0: always]
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile struct { int64_t seconds, no_fork, no_threads, passed, times; } * wanted;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("CKV_FAULTS");
    int fd = path ? open(path, O_RDONLY) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof *wanted, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (at != MAP_FAILED) wanted = at;
    if (fd >= 0) close(fd);
}

static int64_t step(void) {
    static int64_t times, left;
    if (!wanted) return 0;
    if (times != wanted->times) times = left = wanted->times;
    return times == 0 || left-- > 0 ? wanted->seconds : 0;
}

/* Valkey binds a module to libc before anything else: it would not come by here. */
void *dlopen(const char *path, int flags) {
    static void *(*real)(const char *, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    return real(path, flags & ~RTLD_DEEPBIND);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += step();
    if (clock == CLOCK_MONOTONIC && wanted) now->tv_sec += wanted->passed;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){exact.tv_sec, exact.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *at) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (at) *at = exact.tv_sec;
    return exact.tv_sec;
}

pid_t fork(void) {
    static pid_t (*real)(void);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fork");
    if (wanted && wanted->no_fork) {
        errno = EAGAIN;
        return -1;
    }
    return real();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return wanted && wanted->no_threads ? EAGAIN : real(thread, attributes, run, argument);
}

FILE *fopen(const char *restrict path, const char *restrict mode) {
    static FILE *(*real)(const char *, const char *);
    const char *faults = getenv("CKV_FAULTS");
    char other[4096];
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    if (faults && (!strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5))) {
        snprintf(other, sizeof other, "%s.root%s", faults, path);
        if (access(other, F_OK) == 0) path = other;
    }
    return real(path, mode);
}
