#include "bench.h"

#include <math.h>
#include <stdio.h>

static uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

size_t record_key(char key[KEY_SIZE], const Options *o, uint64_t number) {
    if (!o->uuid)
        return (size_t)snprintf(key, KEY_SIZE, "KEY:%0*llu", (int)o->digits,
                                (unsigned long long)number + (unsigned long long)o->first);
    uint64_t a = mix(number * 2), b = mix(number * 2 + 1);
    return (size_t)snprintf(key, KEY_SIZE, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
                            (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
                            (unsigned)(0x8000 | (b >> 48 & 0x3fff)),
                            (unsigned long long)(b & 0xffffffffffffu));
}

/* Zipf's distribution by the method of Gray et al., "Quickly generating billion-record synthetic
 * databases" (1994). */
void picker_init(Picker *p, uint64_t count, double theta, uint64_t seed) {
    *p = (Picker){.count = count, .theta = theta, .random = seed};
    if (theta == 0) return;
    for (uint64_t i = 1; i <= count; i++) p->zeta += 1 / pow((double)i, theta);
    p->alpha = 1 / (1 - theta);
    p->eta = (1 - pow(2.0 / (double)count, 1 - theta)) / (1 - (1 + pow(0.5, theta)) / p->zeta);
}

uint64_t picker_next(Picker *p) {
    double u = (double)(mix(p->random++) >> 11) * 0x1p-53;
    if (p->theta == 0) return (uint64_t)(u * (double)p->count);
    double uz = u * p->zeta;
    if (uz < 1 || p->count == 1) return 0;
    if (uz < 1 + pow(0.5, p->theta) || p->count == 2) return 1;
    uint64_t n = (uint64_t)((double)p->count * pow(p->eta * u - p->eta + 1, p->alpha));
    return n < p->count ? n : p->count - 1;
}
