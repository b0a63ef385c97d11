/* Numbers that are the same in every run. */
#ifndef CKV_BENCH_RANDOM_H
#define CKV_BENCH_RANDOM_H

#include <stdint.h>

/* A number's hash, by which unrelated numbers are made of consecutive ones. */
uint64_t mix(uint64_t x);
/* From 0 to below 1, of a hash. */
double fraction(uint64_t hash);

/* Draws numbers below `count`, number i as often as (i + 1)^-exponent; exponent 0: all alike. */
typedef struct {
    uint64_t count;
    double exponent;
    double first, last; /* of the area to draw from */
    double surely;
    uint64_t random;
} Picker;
void picker_init(Picker *picker, uint64_t count, double exponent, uint64_t seed);
uint64_t picker_next(Picker *picker);

#endif
