/*
 * phrase_encode.c: a record to its codes.
 *
 *      codes, most significant bit first               then ones up to a whole byte,
 *      [lead][code of phrase 0][code of phrase 1] ... [1 1 1]
 *
 *      then bytes of ones only are dropped: the decoder reads ones beyond the end, and seven ones
 *      begin no code.
 *
 * Behind the code of a copy stands more, see phrase_copy.h. There are two ways to the codes: the
 * fast one takes the longest phrase or a copy at each place, the cheapest one is phrase_parse.h's.
 */
#include "phrase/phrase_parse.h"

/* Of a copy: its code, and the bits of length and source behind it. */
#define CODE_AND_TAIL (PHRASE_CODE_MAX + COPY_CLASSES - 1 + COPY_SOURCE_BITS)
_Static_assert(7 + CODE_AND_TAIL < 64, "what is pending is a word");

typedef struct writer {
    uint64_t pending; /* the lowest `count` bits, 7 + CODE_AND_TAIL at most, are not written yet */
    unsigned count;
    uint8_t *at, *end;
} writer;

/* Writes the whole bytes of what is pending. False: no room. */
static inline bool bits_flush(writer *b) {
    unsigned bytes = b->count / 8;
    uint64_t ready = __builtin_bswap64(b->pending << (63 - b->count) << 1);
    if (b->end - b->at >= 8) {
        memcpy(b->at, &ready, 8);
    } else {
        if (b->end - b->at < bytes) return false;
        memcpy(b->at, &ready, bytes);
    }
    b->at += bytes;
    b->count %= 8;
    return true;
}

/* Appends a code. Only what was there before is written: if this is the last code, its end may
 * not be needed. False: no room. */
static inline bool bits_put(writer *b, uint64_t code, unsigned len) {
    if (!bits_flush(b)) return false;
    b->pending = b->pending << len | code;
    b->count += len;
    return true;
}

/* Writes what is pending, filled up with ones, without bytes of nothing but ones. */
static inline bool bits_finish(writer *b) {
    unsigned fill = -b->count & 7;
    uint64_t pending = b->pending << fill | ((1u << fill) - 1);
    unsigned bytes = (b->count + fill) / 8;
    while (bytes > 0 && (pending & 0xff) == 0xff) {
        pending >>= 8;
        bytes--;
    }
    b->pending = pending;
    b->count = 8 * bytes;
    return bits_flush(b);
}

/* ---- codes ----------------------------------------------------------------------------------- */

typedef struct encoder {
    const phrase_dict *d;
    writer out;
    uint32_t context;
    phrase_copy copy; /* the last one */
} encoder;

static inline encoder open_encoder(const phrase_dict *d, void *dst, size_t cap) {
    writer out = {d->lead, d->lead_len, dst, (uint8_t *)dst + cap};
    return (encoder){.d = d, .out = out, .context = d->contexts - 1};
}

static inline const phrase_code *code_of(const encoder *e, uint32_t group) {
    return &e->d->code[e->context * e->d->groups + group];
}

static inline const phrase_code *copy_code(const encoder *e, unsigned k) {
    return code_of(e, e->d->groups - COPY_CODES + k);
}

/* False: no room. */
static inline bool put_phrase(encoder *e, uint32_t payload) {
    uint32_t place = payload & 0xffff;
    const phrase_code *code = code_of(e, payload >> 16);
    bool longer = place >= code->shorter;
    uint32_t bits = place + (longer ? code->code_longer : code->code);
    e->context = code->class;
    return bits_put(&e->out, bits & 0xffffff, code->len + longer);
}

/* A copy to the place `at`. False: no room. */
static inline bool put_copy(encoder *e, size_t at, phrase_copy copy) {
    bool again = copy.from == e->copy.from && copy.len == e->copy.len;
    const phrase_code *code = copy_code(e, again ? COPY_AGAIN : copy_class(copy.len));
    e->copy = copy;
    e->context = code->class;
    if (again) return bits_put(&e->out, code->code, code->len);
    unsigned tail = copy_bits(at, copy.len);
    return bits_put(&e->out, (uint64_t)code->code << tail | copy_tail(at, copy), code->len + tail);
}

static inline size_t finish(encoder *e, const void *dst) {
    return bits_finish(&e->out) ? (size_t)(e->out.at - (const uint8_t *)dst) : PHRASE_NO_ROOM;
}

/* ---- the fast way ---------------------------------------------------------------------------- */

#define RECENT_BYTES 6  /* that a copy has at least, here */
#define RECENT_BITS  10 /* of the largest table's places */

/* By the hash of RECENT_BYTES bytes: the last place where they were seen, + 1. */
typedef struct recent {
    unsigned shift;
    uint16_t place[1 << RECENT_BITS];
} recent;

/* As large as a record of n bytes needs: clearing more would take longer than a short record does.
 */
static inline void recent_clear(recent *r, size_t n) {
    unsigned bits = copy_table_bits(n, RECENT_BITS);
    r->shift = 64 - bits;
    memset(r->place, 0, sizeof *r->place << bits);
}

static inline uint16_t *recent_of(recent *r, const uint8_t *p) {
    uint64_t word = phrase_load64(p) << (64 - 8 * RECENT_BYTES);
    return &r->place[word * 0x9e3779b97f4a7c15u >> r->shift];
}

static void remember(recent *r, const uint8_t *src, size_t at, size_t end, size_t n) {
    for (; at < end && at + 8 <= n && at < COPY_SOURCES - 1; at++)
        *recent_of(r, src + at) = (uint16_t)(at + 1);
}

/* Whether a copy takes fewer bits a byte than the phrase that stands there too. */
static inline bool is_cheaper(const encoder *e, size_t at, phrase_copy copy, uint32_t payload,
                              unsigned len) {
    bool again = copy.from == e->copy.from && copy.len == e->copy.len;
    unsigned bits = copy_code(e, again ? COPY_AGAIN : copy_class(copy.len))->len;
    if (!again) bits += copy_bits(at, copy.len);
    return bits * len < code_of(e, payload >> 16)->len * copy.len;
}

/* A copy for the place `at`, of at least 8 bytes left, that is cheaper than the phrase there; its
 * length is 0 if there is none. */
static inline phrase_copy find_copy(const encoder *e, recent *r, const uint8_t *src, size_t n,
                                    size_t at, uint32_t payload, unsigned len) {
    phrase_copy copy = e->copy;
    if (copy.len > 0 && copy.len <= n - at &&
        phrase_same_bytes(src + copy.from, src + at, copy.len) == copy.len &&
        is_cheaper(e, at, copy, payload, len))
        return copy;
    uint32_t place = *recent_of(r, src + at);
    copy.len = 0;
    if (place == 0) return copy;
    copy.from = place - 1;
    copy.len =
        phrase_same_bytes(src + copy.from, src + at, n - at < COPY_LEN_MAX ? n - at : COPY_LEN_MAX);
    if (copy.len < RECENT_BYTES || !is_cheaper(e, at, copy, payload, len)) copy.len = 0;
    return copy;
}

/* With copies; leaves the last bytes, too few for one. Returns where it got to, n + 1: no room.
 * To remember each byte's place takes a seventh of the time on tweets. Where copies are rare, those
 * where a token begins are enough: tweets are as short, rows of charts, with more copies, 3% longer
 * so. */
static inline size_t encode_with_copies(encoder *e, const uint8_t *src, size_t n) {
    recent r;
    size_t at = 0;
    recent_clear(&r, n);
    while (n - at >= 8) {
        uint32_t payload;
        unsigned len = phrase_match(&e->d->match, src + at, n - at, &payload);
        phrase_copy copy = find_copy(e, &r, src, n, at, payload, len);
        bool done = copy.len > 0 ? put_copy(e, at, copy) : put_phrase(e, payload);
        if (!done) return n + 1;
        size_t end = at + (copy.len > 0 ? copy.len : len);
        remember(&r, src, at, e->d->copies_rare ? at + 1 : end, n);
        at = end;
    }
    return at;
}

size_t phrase_encode(const phrase_dict *d, const void *src, size_t n, void *dst, size_t cap) {
    encoder e = open_encoder(d, dst, cap);
    const uint8_t *p = src;
    size_t left = n;
    uint8_t last[16] = {0}; /* the record's last 7 bytes at most: 8 can be read wherever it ends */
    bool in_last = false;
    if (d->copies) {
        size_t at = encode_with_copies(&e, src, n);
        if (at > n) return PHRASE_NO_ROOM;
        p += at;
        left -= at;
    }
    while (left > 0) {
        if (left < 8 && !in_last) {
            p = memcpy(last, p, left);
            in_last = true;
        }
        uint32_t payload;
        unsigned bytes = phrase_match(&d->match, p, left, &payload);
        if (!put_phrase(&e, payload)) return PHRASE_NO_ROOM;
        p += bytes;
        left -= bytes;
    }
    return finish(&e, dst);
}

/* ---- the cheapest way ------------------------------------------------------------------------ */

size_t phrase_scratch_bytes(void) {
    return sizeof(phrase_parser);
}

size_t phrase_encode_cheapest(const phrase_dict *d, void *scratch, const void *src, size_t n,
                              void *dst, size_t cap) {
    phrase_parser *p = scratch;
    encoder e = open_encoder(d, dst, cap);
    size_t at = 0, end;
    p->d = d;
    p->match = &d->match;
    p->copies = d->copies > 0;
    parse_begin(p, src, n);
    while (parse_next(p)) {
        for (uint32_t i = 0; i < p->tokens; i++, at = end) {
            const parse_node *token = parse_token(p, i, &end);
            bool done = token->payload < PARSE_COPY
                            ? put_phrase(&e, token->payload)
                            : put_copy(&e, at, (phrase_copy){token->from, token->len});
            if (!done) return PHRASE_NO_ROOM;
        }
    }
    return finish(&e, dst);
}
