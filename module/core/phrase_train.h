#ifndef T_H
#define T_H
#include "phrase_inside.h"
#include "huffman.h"
#include <stdio.h>
#define NONE           UINT32_MAX
typedef struct trainer {
    const mem *m;
    const phrase_sample *samples;
    uint32_t *order; /* samples, shuffled */
    uint32_t nsamples;
    phrase_matcher match; /* payload: candidate */
    uint32_t slots_used;
    uint8_t *text;
    uint32_t text_len;
    uint32_t n;
    uint32_t *at, *count;
    uint8_t *len;
    uint64_t *pairs; /* [first:20][second:20][count:24] */
    uint32_t npairs, pairs_used;
    uint32_t *tokens;
    size_t ntokens;
} trainer;
bool phrase_classify(trainer *t, uint32_t k, uint8_t *class);
#endif
