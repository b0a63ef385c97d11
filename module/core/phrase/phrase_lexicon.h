/*
 * phrase_lexicon.h: the phrases of a dictionary that is still being learned, and what learning
 * them needs: which texts there are, how often the sample uses each.
 *
 * Phrases are numbered as they come; the single bytes are 0 to 255, always. Every function that
 * returns bool returns false when memory runs out, and the lexicon can then only be freed.
 */
#ifndef CKV_PHRASE_LEXICON_H
#define CKV_PHRASE_LEXICON_H

#include "phrase/phrase_parse.h"

#define LEXICON_START UINT32_MAX /* among tokens: a record begins here */
#define LEXICON_COPY  PARSE_COPY /* and above, below the start: copy k is this + k */

typedef struct lexicon {
    const mem *mem;
    phrase_matcher match; /* payload: number of the phrase */
    uint32_t cells_used;
    uint32_t n, max;
    uint8_t *text;
    uint32_t text_len, text_max;
    uint32_t *at;    /* [n] where a phrase lies in text */
    uint32_t *count; /* [n] uses in the sample, by the last lexicon_parse() */
    uint8_t *len;    /* [n] */
    /* For the cheapest parse; NULL: the fast one. */
    phrase_parser *parser;
    uint16_t *cost;   /* [n] */
    uint32_t *record; /* [n] the last one with the phrase, + 1; LEXICON_SPREAD: there are two */
    float *regret;    /* [n] bits that the fast parse loses by taking it, by lexicon_regret() */
    bool copies;
    uint32_t copy_count[COPY_CODES];
    uint16_t copy_cost[COPY_CODES];
    size_t parsed;               /* bytes */
    bool copies_known;           /* by another lexicon: */
    float copy_rate[COPY_CODES]; /* how many to expect for each byte */
} lexicon;

#define LEXICON_SPREAD UINT32_MAX

/* The records to learn from: each counts so many times, of which `bytes` is the sum. */
typedef struct sample_set {
    const phrase_sample *list;
    const uint32_t *times; /* NULL: once */
    uint32_t n;
    size_t bytes;
} sample_set;

static inline uint32_t sample_times(const sample_set *set, uint32_t i) {
    return set->times ? set->times[i] : 1;
}

/* An empty lexicon has the single bytes. Its size follows the sample's. `cheapest`: how the sample,
 * and all that is encoded, is to be parsed. */
bool lexicon_init(lexicon *x, const mem *m, size_t sample_bytes, bool cheapest);
void lexicon_free(lexicon *x);

/* Gives an empty lexicon the phrases of another that is no larger and has parsed a sample, and what
 * that has found out about copies. */
void lexicon_take(lexicon *x, const lexicon *from);

/* One pass over the sample that makes a phrase of each pair of neighbours seen `often` times. */
bool lexicon_grow(lexicon *x, const sample_set *set, uint32_t often);

/* Counts the phrases of a fast parse: what the first cheapest one has to start from. */
void lexicon_count(lexicon *x, const sample_set *set);

/* How many tokens lexicon_parse() makes of a sample at most. */
size_t lexicon_tokens_max(const sample_set *set);

/* Cuts the sample into phrases and counts them. Writes the first `max` of them to `tokens`, each
 * record's after a LEXICON_START. Returns how many there are in all, starts included. */
size_t lexicon_parse(lexicon *x, const sample_set *set, uint32_t *tokens, size_t max);

/* Finds out what the fast parse, which takes the longest phrase, loses by which: a phrase may end
 * where nothing good goes on. Counts must be there. */
void lexicon_regret(lexicon *x, const sample_set *set);

/* Keeps the `most` phrases that save most for the memory they take, none that saves `least` bits of
 * the sample or less for each byte of it, or too little in all, and all single bytes; counts and
 * regrets must be there. Counts are kept, numbers are not. */
bool lexicon_keep(lexicon *x, uint32_t most, float least);

/* Parses the sample once, makes phrases of neighbours in its cheapest parse that are worth it, and
 * keeps of all others those that lexicon_keep() would: `most` together. Counts must be there, of
 * lexicon_count() the first time. Those of phrases just made: how often the two were neighbours. */
bool lexicon_renew(lexicon *x, const sample_set *set, uint32_t most);

#endif
