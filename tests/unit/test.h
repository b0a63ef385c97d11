/* test.h: the little that the unit tests share. */
#ifndef CKV_TEST_H
#define CKV_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long test_checks;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        test_checks++;                                                                             \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Where the random numbers begin: other ones in every run, the same again with SEED=<n>. It is said
 * at once, because a test that a sanitizer ends says nothing more. */
static inline uint64_t test_seed(void) {
    const char *given = getenv("SEED");
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    uint64_t seed =
        given ? strtoull(given, NULL, 10) : (uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec << 20;
    printf("SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    /* Seeds that differ in a bit begin far apart, and zero would stay zero. */
    return (seed + 1) * 0x9e3779b97f4a7c15ULL | 1;
}

/* xorshift64* */
static inline uint64_t test_random(void) {
    static uint64_t state;
    if (!state) state = test_seed();
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dULL;
}

static inline int test_report(const char *what) {
    printf("%s: %ld checks passed\n", what, test_checks);
    return 0;
}

#endif
