/* Zipf's distribution for any exponent, in constant time and without a table: rejection-inversion
 * (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
 * distributions", 1996). A number is drawn by the inverse of H, the integral of x^-exponent,
 * rounded, and kept if it lies under the step of that number. */
#include "random.h"

#include <math.h>

uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

double fraction(uint64_t hash) {
    return (double)(hash >> 11) * 0x1p-53;
}

/* H and its inverse; near exponent 1, where the formula divides 0 by 0, it is the logarithm. */
static double area(double exponent, double x) {
    double power = 1 - exponent, logarithm = log(x);
    return fabs(power) < 1e-9 ? logarithm : expm1(power * logarithm) / power;
}

static double area_inverse(double exponent, double y) {
    double power = 1 - exponent;
    if (fabs(power) < 1e-9) return exp(y);
    return exp(log1p(fmax(y * power, -1)) / power);
}

static double height(double exponent, double x) {
    return exp(-exponent * log(x));
}

void picker_init(Picker *p, uint64_t count, double exponent, uint64_t seed) {
    *p = (Picker){.count = count, .exponent = exponent, .random = seed};
    p->first = area(exponent, 1.5) - 1;
    p->last = area(exponent, (double)count + 0.5);
    p->surely = 2 - area_inverse(exponent, area(exponent, 2.5) - height(exponent, 2));
}

uint64_t picker_next(Picker *p) {
    for (;;) {
        double y = p->last + fraction(mix(p->random++)) * (p->first - p->last);
        double x = area_inverse(p->exponent, y);
        double k = fmin(fmax(floor(x + 0.5), 1), (double)p->count);
        if (k - x <= p->surely || y >= area(p->exponent, k + 0.5) - height(p->exponent, k))
            return (uint64_t)k - 1;
    }
}
