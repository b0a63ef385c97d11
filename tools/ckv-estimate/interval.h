/*
 * interval.h: how sure a sum is that was drawn from a sample.
 *
 * Three things are unknown: how the keys differ that were not looked at (the standard error of a
 * sum, with what a finite store leaves to chance), how well the server learns from more than the
 * sample has, and how well the imitated store agrees with a server: of what would be in ckv all but
 * one of twenty sets of data were within MODEL_ERROR (docs/results.md).
 */
#ifndef ESTIMATE_INTERVAL_H
#define ESTIMATE_INTERVAL_H

#define MODEL_ERROR 0.08
#define SURE_95     1.96 /* standard errors to either side: 95 times in a hundred */

/* Numbers drawn from a larger set, each of which stands for `weight` of them. */
typedef struct spread {
    double count, weight, sum; /* numbers; what they stand for; the sum of that */
    double mean, squares;      /* of the numbers: their mean, squared distances from it */
} spread;

void spread_add(spread *s, double weight, double number);

/* The standard error of the sum. */
double spread_error(const spread *s);

/* By how much the sum may be off. */
double interval_error(const spread *s, double doubt, double in_ckv);

#endif
