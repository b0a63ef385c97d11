/*
 * phrase_match.h: which is the longest phrase that some bytes begin with?
 *
 * A hash table of 8-byte cells, one a phrase (single bytes have a table of their own):
 *
 *       63        53 52      46 45                       22 21                     0
 *      +------------+----------+---------------------------+-----------------------+
 *      | fingerprint| length   | payload: what it is to    | offset of the bytes   |
 *      | of the hash| in bytes | the caller                | in `text`             |
 *      +------------+----------+---------------------------+-----------------------+
 *      0: empty
 *
 * Phrases of up to 8 bytes are hashed as one masked word with their length. Which lengths to try,
 * longest first, a filter tells: the byte for the hash of the first `len` bytes has a bit that is
 * set if they may be a phrase. All lengths are looked up there at once, without a branch; a wrong
 * guess of the processor costs more than they do. A fingerprint that matches is a promise; the
 * length and the text decide. (The text alone does not: a phrase shares it with those that it
 * begins.)
 *
 *      filter   bits 0-6: a phrase of 2-8 bytes    bit 7: a longer one that begins with these 8
 *
 * A longer phrase is hashed with all whole words before its last one ("tiers"), and each of its
 * prefixes of 8, 16 ... bytes has a marker, a cell whose payload tells what goes on from there,
 * and whose length is 64 + the number of words:
 *
 *      marker   bits 0-7: phrases of 1 ... 8 bytes more   bit 8: a longer one, by the next marker
 *
 * Who writes records chooses the phrases. So the hash is keyed, or he could choose such as share a
 * home and a fingerprint, and each look-up that comes by would go through all of them. Which phrase
 * is found does not depend on the key, only how soon.
 */
#ifndef CKV_PHRASE_MATCH_H
#define CKV_PHRASE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PHRASE_LEN_MAX     64
#define PHRASE_TEXT_MAX    (1u << 22) /* bytes that a cell's offset can tell apart */
#define PHRASE_TEXT_PAD    64         /* readable bytes after the text's last */
#define PHRASE_PAYLOAD_MAX (1u << 24)

#define MATCH_LONGER      0x80u
#define MATCH_FILTER_HASH 0x9e3779b97f4a7c15u
#define MATCH_MARKER_LEN  9 /* stands for a length in a marker's hash */
#define MATCH_MARKER      64
#define MATCH_TIERS       (PHRASE_LEN_MAX / 8)

typedef struct phrase_matcher {
    uint64_t *cells;
    uint8_t *filter;
    const uint8_t *text;
    uint32_t cell_count;
    unsigned filter_shift; /* 64 - log2 of the filter's bytes */
    uint64_t secret[2];    /* of the hash; the first is odd */
    uint32_t single[256];  /* payload of each single byte */
} phrase_matcher;

/* Of the tables that are made from now on. */
extern uint64_t phrase_secret[2];

/* Adds a phrase of 2 to 64 bytes that lie at `offset` of the text; it must not be there yet.
 * The table must have an empty cell for it and for each of its prefixes of 8, 16 ... bytes.
 * Returns how many cells it took. */
unsigned phrase_match_add(phrase_matcher *t, uint32_t offset, unsigned len, uint32_t payload);

/* The same for a phrase of more than 8 bytes at p, of which `left` bytes can be read. 0: none. */
unsigned phrase_match_long(const phrase_matcher *t, const uint8_t *p, size_t left,
                           uint32_t *payload);

/* A phrase that some bytes begin with. */
typedef struct phrase_found {
    uint32_t len, payload;
} phrase_found;

/* Finds all phrases at p, of which `left` >= 1 bytes belong to the record, though 8 can be read;
 * short ones first. Writes PHRASE_LEN_MAX at most; returns how many. */
unsigned phrase_match_all(const phrase_matcher *t, const uint8_t *p, size_t left,
                          phrase_found *found);

static inline uint64_t phrase_load64(const uint8_t *p) {
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* How many bytes, `most` at most, are the same from both places on. */
static inline uint32_t phrase_same_bytes(const uint8_t *a, const uint8_t *b, size_t most) {
    size_t len = 0;
    for (; len + 8 <= most; len += 8) {
        uint64_t differ = phrase_load64(a + len) ^ phrase_load64(b + len);
        if (differ) return (uint32_t)len + (uint32_t)__builtin_ctzll(differ) / 8;
    }
    while (len < most && a[len] == b[len]) len++;
    return (uint32_t)len;
}

static inline uint64_t match_mask(unsigned len) {
    return ~(uint64_t)0 >> (64 - 8 * len);
}

/* Hash of `len` bytes (the rest of `word` is 0) that come after the bytes of hash `before`. The
 * product is folded: of its lower half alone, the highest bit of a word changes that bit and no
 * other whatever the secret is, and a word behind it could be chosen to change it back. */
static inline uint64_t match_hash(const phrase_matcher *t, uint64_t before, uint64_t word,
                                  unsigned len) {
    uint64_t x = word + before + len * t->secret[1];
    unsigned __int128 product = (unsigned __int128)x * t->secret[0];
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The filter's byte for the lowest `len` bytes of `word`. */
static inline unsigned match_filter(const phrase_matcher *t, uint64_t word, unsigned len) {
    return t->filter[(word << (64 - 8 * len)) * MATCH_FILTER_HASH >> t->filter_shift];
}

static inline uint32_t match_home(const phrase_matcher *t, uint64_t hash) {
    return (uint32_t)((hash >> 32) * t->cell_count >> 32);
}
/* Fingerprint and length, as a cell has them: never 0. */
static inline uint64_t match_print(uint64_t hash, unsigned len) {
    return (hash >> 28 & 0x7ff) << 7 | len;
}

static inline uint32_t match_payload(uint64_t cell) {
    return (uint32_t)(cell >> 22) & (PHRASE_PAYLOAD_MAX - 1);
}
static inline const uint8_t *match_text(const phrase_matcher *t, uint64_t cell) {
    return t->text + (cell & (PHRASE_TEXT_MAX - 1));
}

/* The payload of the phrase that is the lowest `len` bytes of `word`, at most 8. */
static inline bool match_word(const phrase_matcher *t, uint64_t word, unsigned len,
                              uint32_t *payload) {
    uint64_t masked = word & match_mask(len), hash = match_hash(t, 0, masked, len);
    uint64_t print = match_print(hash, len);
    for (uint32_t i = match_home(t, hash); t->cells[i] != 0;
         i = i + 1 == t->cell_count ? 0 : i + 1) {
        uint64_t cell = t->cells[i];
        if (cell >> 46 != print) continue;
        if (((phrase_load64(match_text(t, cell)) ^ masked) & match_mask(len)) != 0) continue;
        *payload = match_payload(cell);
        return true;
    }
    return false;
}

/* Which lengths of 2 to 8 bytes a phrase at `word` may have, bit by bit; `eight` is the filter's
 * byte for 8. */
static inline unsigned match_lens(const phrase_matcher *t, uint64_t word, unsigned eight,
                                  size_t left) {
    unsigned lens = (eight & 64) | (match_filter(t, word, 7) & 32) |
                    (match_filter(t, word, 6) & 16) | (match_filter(t, word, 5) & 8) |
                    (match_filter(t, word, 4) & 4) | (match_filter(t, word, 3) & 2) |
                    (match_filter(t, word, 2) & 1);
    return left < 8 ? lens & ((1u << left >> 1) - 1) : lens;
}

/* Finds the longest phrase at p, of which `left` >= 1 bytes belong to the record, though 8 can be
 * read. Returns its length. */
static inline unsigned phrase_match(const phrase_matcher *t, const uint8_t *p, size_t left,
                                    uint32_t *payload) {
    uint64_t word = phrase_load64(p);
    unsigned eight = match_filter(t, word, 8);
    if (eight & MATCH_LONGER && left > 8) {
        unsigned len = phrase_match_long(t, p, left, payload);
        if (len > 0) return len;
    }
    unsigned lens = match_lens(t, word, eight, left);
    while (lens) {
        unsigned top = 31u - (unsigned)__builtin_clz(lens);
        if (match_word(t, word, top + 2, payload)) return top + 2;
        lens ^= 1u << top;
    }
    *payload = t->single[word & 0xff];
    return 1;
}

#endif
