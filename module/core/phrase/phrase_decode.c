/*
 * phrase_decode.c: codes to their record. The format is in phrase_encode.c.
 *
 * A code's first 8 or 10 bits tell its length and its phrase's class mostly; only then are segments
 * searched. So one load from a small table lies between a code and the next one, and the processor
 * fetches phrases while it is ahead with codes.
 */
#include "phrase/phrase_inside.h"

#define END PHRASE_MAX

typedef struct reader {
    const phrase_dict *d;
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
                    .bytes = bytes,
                    .last = ~(n < 8 ? load_short(bytes, n) : load_big(bytes + n - 8)),
                    .last_at = n < 8 ? 0 : 8 * (n - 8),
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

/* By value: a reader whose address is taken would not stay in registers. */
static phrase_first search(const phrase_dict *d, uint32_t context, uint32_t code,
                           uint32_t segment) {
    const phrase_segment *s = d->segment + context * (2 * d->groups + 1) + segment;
    while (code >= s->limit) s++;
    return (phrase_first){s->rank, s->class, s->len};
}

/* The rank of the next code, or END. */
static inline uint32_t next_rank(reader *r) {
    phrase_first f =
        r->d->first[(r->context << r->d->first_bits) + (r->word >> (64 - r->d->first_bits))];
    if (f.len == 0) {
        f = search(r->d, r->context, (uint32_t)(r->word >> (64 - PHRASE_CODE_MAX)), f.rank);
        if (f.len == 0) return END;
    }
    uint32_t rank = (f.rank + (uint32_t)(r->word >> (64 - f.len))) & 0xffff;
    r->word <<= f.len;
    r->at += f.len;
    r->context = f.class;
    return rank;
}

/* Writes a phrase, as 16 bytes where there is room for them. Returns its length; 0: no room. */
static inline size_t copy(const phrase_dict *d, uint32_t rank, uint8_t *to, size_t room) {
    uint32_t entry = d->entry[rank];
    const uint8_t *from = d->text + (entry >> 6);
    size_t len = (entry & 63) + 1;
    if (room >= PHRASE_LEN_MAX) {
        memcpy(to, from, 16);
        if (len > 16) memcpy(to + 16, from + 16, PHRASE_LEN_MAX - 16);
    } else {
        if (len > room) return 0;
        memcpy(to, from, len);
    }
    return len;
}

/* The end is where less than a byte of ones is left. */
static inline bool is_end(const reader *r, size_t n) {
    return r->at + 8 > n * 8;
}

size_t phrase_decode(const phrase_dict *d, const void *src, size_t n, void *dst, size_t cap) {
    uint8_t *to = dst;
    size_t left = cap, len;
    if (n == 0) return 0;
    if (((const uint8_t *)src)[n - 1] == 0xff) return PHRASE_CORRUPT;
    reader r = open_reader(d, src, n);
    for (;;) {
        refill(&r);
        for (int i = 0; i < 2; i++) {
            uint32_t rank = next_rank(&r);
            if (rank == END) return is_end(&r, n) ? cap - left : PHRASE_CORRUPT;
            if ((len = copy(d, rank, to, left)) == 0) return PHRASE_NO_ROOM;
            to += len;
            left -= len;
        }
    }
}

size_t phrase_decoded_len(const phrase_dict *d, const void *src, size_t n) {
    uint32_t rank;
    size_t len = 0;
    if (n == 0) return 0;
    if (((const uint8_t *)src)[n - 1] == 0xff) return PHRASE_CORRUPT;
    reader r = open_reader(d, src, n);
    for (refill(&r); (rank = next_rank(&r)) != END; refill(&r)) len += (d->entry[rank] & 63) + 1;
    return is_end(&r, n) ? len : PHRASE_CORRUPT;
}
