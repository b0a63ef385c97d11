/*
 * phrase_inside.h: what the files of the phrase codec share.
 *
 * Phrases stand in the order of their rank. Ranks are cut into groups; phrases of one group are
 * about equally frequent and belong to one class. The class of a phrase is the context of the
 * next one (a record's first phrase has a context of its own, the last). Each context has its own
 * prefix code, in which the phrases of a group have codes of one length, or of two adjacent ones:
 *
 *      rank     0 1 2 3 4 5 6 7 8 9 ...
 *      group    |  0  |1|    2    | ...         class_of[group]
 *      context  0: lengths  6 6 7 3 10 10 10 11 11 ...
 *               1: lengths  9 9 9 4 7  7  7  7  7  ...
 *
 * So a context costs a few bytes a group, not a few bytes a phrase. In every context the codes
 * are canonical (ordered by length, then rank) and fill all the space below seven ones.
 *
 * The phrases of the last ranks may be copies, see phrase_copy.h.
 */
#ifndef CKV_PHRASE_INSIDE_H
#define CKV_PHRASE_INSIDE_H

#include "phrase/phrase.h"
#include "phrase/phrase_copy.h"
#include "phrase/phrase_match.h"

#define PHRASE_MAX          65536
#define PHRASE_GROUPS_MAX   256
#define PHRASE_CONTEXTS_MAX 33
#define PHRASE_CODE_MAX     24 /* bits */
#define PHRASE_END_BITS     7  /* this many ones begin no code: the end, or escapes of the caller */
#define PHRASE_NO_CLASS     0xff

/* The codes of a group in a context, modulo 2^24: the phrase at a place below `shorter` has the
 * code `code` + place, of `len` bits; the others `code_longer` + place, one bit longer. */
typedef struct phrase_code {
    uint32_t code : 24, len : 8;
    uint32_t code_longer : 24, class : 8; /* the class is the group's in every context */
    uint32_t shorter;
} phrase_code;

/* Codes of one length and one group: those below `limit`, left-aligned to 24 bits, that are in no
 * segment before. A phrase's rank is `rank` + its code, modulo 2^16. */
typedef struct phrase_segment {
    uint32_t limit;
    uint16_t rank;
    uint8_t len, class; /* len 0: the end, of PHRASE_NO_CLASS */
} phrase_segment;

/* By the first bits of a code: its segment, if that can be told; else len is 0, there is no class,
 * and `rank` is the segment to start the search at. */
typedef struct phrase_first {
    uint16_t rank;
    uint8_t class, len;
} phrase_first;

struct phrase_dict {
    const mem *mem;
    uint32_t n, groups, contexts, text_len;
    uint32_t copies;         /* of the n phrases the last, COPY_CODES or none */
    bool copies_rare;        /* few tokens are copies */
    uint32_t plain;          /* classes of phrases with a text */
    uint32_t ratio;          /* encoded / raw bytes of the samples, in millionths */
    phrase_matcher match;    /* payload: group << 16 | place in the group */
    uint32_t *entry;         /* [n - copies] offset in text << 6 | length - 1 */
    uint8_t *text;           /* a phrase that begins another one shares its bytes */
    phrase_code *code;       /* [contexts][groups] */
    phrase_segment *segment; /* [contexts][2 * groups + 1], the last is the end's */
    phrase_first *first;     /* [contexts][1 << first_bits] */
    unsigned first_bits;
    uint8_t lead, lead_len; /* bits that an encoding begins with */
    uint32_t group_size[PHRASE_GROUPS_MAX];
    uint8_t class_of[PHRASE_GROUPS_MAX];
};

/* What a dictionary is built of. */
typedef struct phrase_plan {
    uint32_t n, groups, contexts, ratio;
    uint32_t copies;            /* of the n phrases the last, COPY_CODES or none */
    const uint8_t *const *text; /* [n - copies] by rank */
    const uint8_t *len;         /* [n - copies] */
    const uint32_t *group_size; /* [groups] */
    const uint8_t *class_of;    /* [groups], below contexts - 1 */
    const uint8_t *code_len;    /* [contexts][groups] */
    const uint32_t *shorter;    /* [contexts][groups] how many have codes of code_len bits, >= 1 */
} phrase_plan;

/* Checks a plan and makes a dictionary of it. NULL: out of memory, or the plan is wrong. */
phrase_dict *phrase_build(const mem *m, const phrase_plan *plan);

/* What a dictionary would take, bytes, of n phrases at text + at[i] with so many groups and
 * contexts, and of copies (COPY_CODES or none) with theirs. 0: out of memory. */
size_t phrase_size(const mem *m, const uint8_t *text, const uint32_t *at, const uint8_t *len,
                   uint32_t n, uint32_t groups, uint32_t contexts, uint32_t copies);

#endif
