/*
 * phrase_decode.c: codes to their record. The format is in phrase_encode.c.
 *
 * Codes are at most 24 bits long. The first 10 say at which segment of the context to begin to
 * look, and mostly it is the one; the segment gives the phrase's rank and the next context, so that
 * only small tables lie between one code and the next.
 */
#include "phrase_inside.h"

/* 8 bytes of the encoding, then ones for ever: no code reaches farther than 24 bits into them. */
typedef struct tail {
    uint8_t bytes[24];
    size_t from; /* where bytes[0] stands in the encoding */
} tail;

static tail make_tail(const uint8_t *src, size_t n) {
    tail t = {.from = n < 8 ? 0 : n - 8};
    memset(t.bytes, 0xff, sizeof t.bytes);
    memcpy(t.bytes, src + t.from, n - t.from);
    return t;
}

/* 24 bits from bit `at` on, of which at most 24 + 7 lie beyond the end. */
static inline uint32_t peek(const uint8_t *src, size_t n, const tail *t, size_t at) {
    size_t byte = at / 8;
    uint64_t word = phrase_load64(byte + 8 <= n ? src + byte : t->bytes + (byte - t->from));
    return (uint32_t)(__builtin_bswap64(word) << at % 8 >> (64 - PHRASE_CODE_MAX));
}

/* The rank of the code at *at, moves on; or PHRASE_MAX at the end. */
static inline uint32_t next_rank(const phrase_dict *d, uint32_t code, size_t *at,
                                 uint32_t *context) {
    const phrase_segment *s = d->segment + *context * (2 * d->groups + 1);
    s += d->first[(*context << PHRASE_FIRST_BITS) + (code >> (PHRASE_CODE_MAX - PHRASE_FIRST_BITS))];
    while (code >= s->limit) s++;
    if (s->len == 0) return PHRASE_MAX;
    *at += s->len;
    *context = s->class;
    return (s->rank + (code >> (PHRASE_CODE_MAX - s->len))) & 0xffff;
}

/* The end is where less than a byte of ones is left. */
static inline bool is_end(size_t n, size_t at) { return at + 8 > n * 8; }

/* Copies a phrase, as 16 bytes where there is room for them. */
static inline void copy(uint8_t *to, const uint8_t *from, unsigned len, size_t room) {
    if (room >= PHRASE_LEN_MAX) {
        memcpy(to, from, 16);
        if (len > 16) memcpy(to + 16, from + 16, 48);
    } else {
        memcpy(to, from, len);
    }
}

size_t phrase_decode(const phrase_dict *d, const void *src, size_t n, void *dst, size_t cap) {
    const uint8_t *codes = src;
    uint8_t *to = dst;
    uint32_t context = d->contexts - 1, rank;
    size_t at = 0;
    if (n == 0) return 0;
    if (codes[n - 1] == 0xff) return PHRASE_CORRUPT;
    tail t = make_tail(codes, n);
    while ((rank = next_rank(d, peek(codes, n, &t, at), &at, &context)) < PHRASE_MAX) {
        uint32_t entry = d->entry[rank];
        unsigned len = (entry & 63) + 1;
        size_t room = cap - (size_t)(to - (uint8_t *)dst);
        if (len > room) return PHRASE_NO_ROOM;
        copy(to, d->text + (entry >> 6), len, room);
        to += len;
    }
    return is_end(n, at) ? (size_t)(to - (uint8_t *)dst) : PHRASE_CORRUPT;
}

size_t phrase_decoded_len(const phrase_dict *d, const void *src, size_t n) {
    const uint8_t *codes = src;
    uint32_t context = d->contexts - 1, rank;
    size_t at = 0, len = 0;
    if (n == 0) return 0;
    if (codes[n - 1] == 0xff) return PHRASE_CORRUPT;
    tail t = make_tail(codes, n);
    while ((rank = next_rank(d, peek(codes, n, &t, at), &at, &context)) < PHRASE_MAX)
        len += (d->entry[rank] & 63) + 1;
    return is_end(n, at) ? len : PHRASE_CORRUPT;
}
