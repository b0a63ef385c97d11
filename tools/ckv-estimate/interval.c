/* interval.c: see interval.h. */
#include "interval.h"

#include <math.h>

/* After Welford: no large numbers are subtracted from each other. */
void spread_add(spread *s, double weight, double number) {
    double before = number - s->mean;
    s->count++;
    s->weight += weight;
    s->sum += weight * number;
    s->mean += before / s->count;
    s->squares += before * (number - s->mean);
}

double spread_error(const spread *s) {
    if (s->count < 2 || s->weight <= s->count) return 0;
    double variance = s->squares / (s->count - 1), drawn = s->count / s->weight;
    return s->weight * sqrt(variance / s->count * (1 - drawn));
}

double interval_error(const spread *s, double doubt, double in_ckv) {
    return hypot(hypot(SURE_95 * spread_error(s), doubt), MODEL_ERROR * in_ckv);
}
