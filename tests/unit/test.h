/* test.h: the little that the unit tests share. */
#ifndef CKV_TEST_H
#define CKV_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long test_checks;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        test_checks++;                                                                             \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* xorshift64*, the same numbers in every run. */
static inline uint64_t test_random(void) {
    static uint64_t state = 0x9e3779b97f4a7c15ULL;
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
