/*
 * kinds.h: which kind of data a value is of.
 *
 * A store holds tweets, rows of a table and profiles at a time, and a dictionary for each takes
 * fewer bytes than one for all of them. What kinds there are is learned from the values alone, and
 * told from a value alone as well, in well under 100 ns: by which pairs of bytes it is made of, and
 * how long it is.
 */
#ifndef CKV_KINDS_H
#define CKV_KINDS_H

#include "base/mem.h"
#include "phrase/phrase.h"

#include <stdbool.h>
#include <stdint.h>

#define KINDS_MAX         7
#define KINDS_FEATURES    1024
#define KINDS_LANES       8 /* of a row: one for each kind that was learned */
#define KINDS_SCORE_LEAST (-600)

/* How likely each feature is among each kind, as logarithms, 0 at most: what is added up is
 * compared. Several that were learned may be taken for one. */
typedef struct kinds_model {
    int16_t score[KINDS_FEATURES][KINDS_LANES]; /* of a lane without a kind: the least */
    uint8_t kind[KINDS_LANES];                  /* below KINDS_MAX */
} kinds_model;

/* The kind of a value of at least a byte. */
uint32_t kinds_of(const kinds_model *model, const void *value, size_t n);

/* Learns what kinds there are, by what they look like. A kind of more than this share of all bytes,
 * `most`, 0 to 1, is split even if both parts are much alike. Returns how many there are, KINDS_MAX
 * at most; 1: all values are much alike, and the model is of no use; 0: out of memory. */
uint32_t kinds_learn(const mem *m, const phrase_sample *samples, size_t n, double most,
                     kinds_model *model);

#endif
