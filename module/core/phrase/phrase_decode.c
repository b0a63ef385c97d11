/*
 * phrase_decode.c: codes to their record. The format is in phrase_encode.c and phrase_copy.h.
 *
 * A code's first 8 or 10 bits tell its length and its phrase's class mostly; only then are segments
 * searched. So one load from a small table lies between a code and the next one, and the processor
 * fetches phrases while it is ahead with codes. What is no phrase at once has a class above those
 * of phrases: that is the one branch for codes to be searched, copies and the end.
 */
#include "phrase/phrase_inside.h"

/* What every code needs of the dictionary is here once more: bytes that are written might otherwise
 * be the dictionary's for all that the compiler knows, and it would load it anew for each. */
typedef struct reader {
    const phrase_dict *d;
    const phrase_first *first;
    const uint32_t *entry;
    const uint8_t *text;
    unsigned first_bits, first_shift;
    uint32_t plain;
    const uint8_t *bytes;
    uint64_t word;  /* the next bits, highest first */
    uint64_t last;  /* the encoding's last 8 bytes (or all, then ones), inverted */
    size_t at;      /* bits read */
    size_t last_at; /* where in the encoding `last` begins, bits */
    uint32_t context;
} reader;

static inline uint64_t load_big(const uint8_t *p) {
    return __builtin_bswap64(phrase_load64(p));
}

/* Fewer than 8 bytes, highest first, then ones. */
static uint64_t load_short(const uint8_t *p, size_t n) {
    uint64_t word = ~(uint64_t)0 >> 8 * n;
    for (size_t i = 0; i < n; i++) word |= (uint64_t)p[i] << (56 - 8 * i);
    return word;
}

static inline reader open_reader(const phrase_dict *d, const uint8_t *bytes, size_t n) {
    return (reader){.d = d,
                    .first = d->first,
                    .entry = d->entry,
                    .text = d->text,
                    .first_bits = d->first_bits,
                    .first_shift = 64 - d->first_bits,
                    .plain = d->plain,
                    .bytes = bytes,
                    .last = ~(n < 8 ? load_short(bytes, n) : load_big(bytes + n - 8)),
                    .last_at = n < 8 ? 0 : 8 * (n - 8),
                    .at = d->lead_len,
                    .context = d->contexts - 1};
}

/* Loads 57 bits or more, enough for two codes; beyond the end there are ones. */
static inline void refill(reader *r) {
    if (r->at <= r->last_at && r->last_at > 0) {
        r->word = load_big(r->bytes + r->at / 8) << r->at % 8;
    } else {
        size_t shift = r->at - r->last_at;
        r->word = shift < 64 ? ~(r->last << shift) : ~(uint64_t)0;
    }
}

/* The next `len` bits. */
static inline uint32_t take(reader *r, unsigned len) {
    uint32_t bits = (uint32_t)(r->word >> 1 >> (63 - len));
    r->word <<= len;
    r->at += len;
    return bits;
}

/* By value: a reader whose address is taken would not stay in registers. */
static phrase_first search(const phrase_dict *d, uint32_t context, uint32_t code,
                           uint32_t segment) {
    const phrase_segment *s = d->segment + context * (2 * d->groups + 1) + segment;
    while (code >= s->limit) s++;
    return (phrase_first){s->rank, s->class, s->len};
}

/* What the next code is, as far as its first bits tell. */
static inline phrase_first look(const reader *r) {
    return r->first[(r->context << r->first_bits) + (r->word >> r->first_shift)];
}

/* What it is for sure; len 0: the end. */
static inline phrase_first look_closely(const reader *r, phrase_first f) {
    if (f.len > 0) return f;
    return search(r->d, r->context, (uint32_t)(r->word >> (64 - PHRASE_CODE_MAX)), f.rank);
}

/* Takes a code; returns its rank. */
static inline uint32_t take_code(reader *r, phrase_first f) {
    uint32_t rank = (f.rank + (uint32_t)(r->word >> (64 - f.len))) & 0xffff;
    r->word <<= f.len;
    r->at += f.len;
    r->context = f.class;
    return rank;
}

/* Takes the code of a copy to the place `at` of the record, and what is behind it. `copy` is the
 * one before. False: there can be no such copy. */
static inline bool take_copy(reader *r, phrase_first f, size_t at, phrase_copy *copy) {
    uint32_t class = take_code(r, f) - (r->d->n - COPY_CODES);
    refill(r);
    if (class < COPY_AGAIN) {
        copy->len = copy_shortest(class) + take(r, class);
        copy->from = take(r, copy_source_bits(at));
        refill(r);
    }
    return copy->len > 0 && copy->from < at;
}

static inline size_t phrase_len(const reader *r, uint32_t rank) {
    return (r->entry[rank] & 63) + 1;
}

/* Writes a phrase, as the longest where there is room for that: with a branch on its length, which
 * the processor often guesses wrong, long values took a tenth longer. Returns its length; 0: no
 * room. */
static inline size_t write_phrase(const reader *r, uint32_t rank, uint8_t *to, size_t room) {
    uint32_t entry = r->entry[rank];
    const uint8_t *from = r->text + (entry >> 6);
    size_t len = (entry & 63) + 1;
    if (room >= PHRASE_LEN_MAX) {
        memcpy(to, from, PHRASE_LEN_MAX);
    } else {
        if (len > room) return 0;
        memcpy(to, from, len);
    }
    return len;
}

/* Writes a copy, 16 bytes at a time where they are there already and there is room for them.
 * Returns its length; 0: no room. */
static inline size_t write_copy(const uint8_t *from, size_t len, uint8_t *to, size_t room) {
    if (len > room) return 0;
    if (to - from >= 16 && room >= COPY_LEN_MAX + 16)
        for (size_t i = 0; i < len; i += 16) memcpy(to + i, from + i, 16);
    else
        for (size_t i = 0; i < len; i++) to[i] = from[i];
    return len;
}

/* The end is where less than a byte of ones is left. */
static inline bool is_end(const reader *r, size_t n) {
    return r->at + 8 > n * 8;
}

/* Goes over all codes; `writes` is a constant where it is called. */
static inline __attribute__((always_inline)) size_t
walk(const phrase_dict *d, const void *src, size_t n, bool writes, uint8_t *dst, size_t cap) {
    uint8_t *to = dst;
    size_t left = cap, len;
    phrase_copy copy = {0, 0};
    if (n == 0) return 0;
    if (((const uint8_t *)src)[n - 1] == 0xff) return PHRASE_CORRUPT;
    reader r = open_reader(d, src, n);
    for (;;) {
        refill(&r);
        for (int i = 0; i < 2; i++) {
            phrase_first f = look(&r);
            if (f.class >= r.plain) {
                f = look_closely(&r, f);
                if (f.len == 0) return is_end(&r, n) ? cap - left : PHRASE_CORRUPT;
            }
            if (f.class >= r.plain) {
                if (!take_copy(&r, f, cap - left, &copy)) return PHRASE_CORRUPT;
                len = writes ? write_copy(dst + copy.from, copy.len, to, left) : copy.len;
                i = -1; /* two codes can be taken again */
            } else {
                uint32_t rank = take_code(&r, f);
                len = writes ? write_phrase(&r, rank, to, left) : phrase_len(&r, rank);
            }
            if (len == 0) return PHRASE_NO_ROOM;
            if (writes) to += len;
            left -= len;
        }
    }
}

size_t phrase_decode(const phrase_dict *d, const void *src, size_t n, void *dst, size_t cap) {
    return walk(d, src, n, true, dst, cap);
}

size_t phrase_decoded_len(const phrase_dict *d, const void *src, size_t n) {
    return walk(d, src, n, false, NULL, SIZE_MAX);
}
