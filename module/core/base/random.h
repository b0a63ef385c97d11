/*
 * random.h: numbers to sample with, one in a few cycles: xorshift64 (Marsaglia, Xorshift RNGs,
 * Journal of Statistical Software 8, 2003). Who sees some knows all others.
 */
#ifndef CKV_RANDOM_H
#define CKV_RANDOM_H

#include <stdint.h>

/* The next of all but 0; the state is the number before, at first any but 0. */
static inline uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

#endif
