/*
 * selection.h: which strings of the sample the imitated server learns from, and which it stores.
 *
 * A server learns from up to CODEC_SAMPLE_VALUES of either kind, short and long, of what it stores,
 * and a dictionary does better on what it was learned from. How much of its data that is depends on
 * the size of the store: all of it in a small one, next to nothing in a large one. So of each kind
 * a part of the sample is learned from, and what is stored is mixed of that part and of the rest as
 * the server's data are:
 *
 *      sample of a kind    | learned from        | not learned from       |
 *      stored              |########             |########################|
 *                           as much of the whole as the server learns from
 *
 * Where the sample is too small to learn as much as the server would, what a dictionary makes of
 * values that it knows is too good, and of others too bad: the truth lies between the two, and so
 * does the mixture.
 */
#ifndef ESTIMATE_SELECTION_H
#define ESTIMATE_SELECTION_H

#include "sample.h"

/* Values shorter than CODEC_LONG, and longer ones. */
enum { KINDS_OF_VALUES = 2 };

typedef struct kind_of_values {
    size_t *all; /* in the sample */
    size_t count;
    size_t learned;      /* the first so many are learned from */
    double store_bytes;  /* raw, in the whole store, as far as they are learned from */
    double sample_bytes; /* the same in the sample */
    double known;        /* share of what is stored that is to be learned from */
    double completeness; /* share of what the server would learn from that is in the sample */
} kind_of_values;

typedef struct selection {
    kind_of_values kinds[KINDS_OF_VALUES];
    bool *learned, *stored; /* of the sample */
    size_t stored_count;
    double strings; /* in the store, that those stored stand for */
} selection;

void selection_make(selection *chosen, const sample *s);
void selection_free(selection *chosen);

/* A string that would move into ckv, if its prefix is named. */
bool selection_may(const sampled *k);

/* A string that ckv would store and encode with what it has learned. */
bool selection_fits(const sampled *k);

#endif
