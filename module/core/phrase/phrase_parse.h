/*
 * phrase_parse.h: the cheapest way to cut a record into phrases and copies.
 *
 * Dynamic programming over (place in the record, class of what leads there): a class matters, as it
 * is the context of what comes next. A place keeps its cheapest few classes. Records longer than a
 * block are parsed block by block; the next one begins where the cheapest token ends that reaches
 * beyond the one before.
 */
#ifndef CKV_PHRASE_PARSE_H
#define CKV_PHRASE_PARSE_H

#include "phrase/phrase_inside.h"

#define PARSE_BLOCK     512                          /* bytes */
#define PARSE_PLACES    (PARSE_BLOCK + COPY_LEN_MAX) /* that its tokens may reach */
#define PARSE_STATES    2                            /* classes that a place keeps */
#define PARSE_BIT       16                           /* costs are in this part of a bit */
#define PARSE_HEAD_BITS 12         /* 2^12 lists of places with the same beginning, at most */
#define PARSE_SOURCES   (1u << 14) /* first places of the record that copies are made of */
#define PARSE_COPY      (1u << 24) /* the payload of a token that is copy k is this + k */

typedef struct parse_node {
    uint32_t cost;
    uint32_t payload;   /* of the token that leads here; PARSE_COPY and above: a copy */
    uint16_t from, len; /* the last copy */
    uint16_t before;    /* where the token begins, and from which node there */
    uint8_t before_state, class;
} parse_node;

typedef struct phrase_parser {
    /* A dictionary's costs, or those of a lexicon's phrases, of one class, and of copies. */
    const phrase_dict *d;
    const phrase_matcher *match;
    const uint16_t *phrase_cost, *copy_cost;
    bool copies;
    /* The record. */
    const uint8_t *src;
    size_t n;
    uint8_t tail[16]; /* its last bytes, then zeros: 8 can be read wherever it ends */
    uint32_t context;
    phrase_copy copy; /* the last one before the block */
    /* The block, and what came of it: its tokens' last nodes, in order. */
    size_t begin;
    uint32_t ahead;   /* the cheapest place beyond the one that is looked at */
    uint32_t reached; /* the last place that a token ends at */
    uint32_t tokens;
    uint16_t token[PARSE_PLACES];
    uint8_t states[PARSE_PLACES + 1];
    uint32_t best[PARSE_PLACES + 1];
    parse_node node[PARSE_PLACES + 1][PARSE_STATES];
    /* Places by the hash of the 4 bytes there, + 1: the last one, and for each the one before. */
    unsigned head_shift;
    uint16_t head[1 << PARSE_HEAD_BITS];
    uint16_t chain[PARSE_SOURCES];
} phrase_parser;

/* Begins with a record of n bytes. */
void parse_begin(phrase_parser *p, const void *src, size_t n);

/* Parses the next block. Its tokens are parse_token(p, 0 .. p->tokens - 1), and end where the next
 * block begins. False: there is none. */
bool parse_next(phrase_parser *p);

/* A token of the block, by its last node, and the place after it. */
static inline const parse_node *parse_token(const phrase_parser *p, uint32_t i, size_t *end) {
    uint32_t at = p->token[i] / PARSE_STATES;
    *end = p->begin + at;
    return &p->node[at][p->token[i] % PARSE_STATES];
}

#endif
