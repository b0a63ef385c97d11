/*
 * phrase_encode.c: a record to its codes.
 *
 *      codes, most significant bit first        then ones up to a whole byte,
 *      [code of phrase 0][code of phrase 1] ... [1 1 1]
 *
 *      then bytes of ones only are dropped: the decoder reads ones beyond the end, and seven ones
 *      begin no code.
 */
#include "phrase/phrase_inside.h"

typedef struct writer {
    uint64_t pending; /* the lowest `count` bits, 31 at most, are not written yet */
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
static inline bool bits_put(writer *b, uint32_t code, unsigned len) {
    if (!bits_flush(b)) return false;
    b->pending = b->pending << len | code;
    b->count += len;
    return true;
}

/* Writes what is pending, filled up with ones, without bytes of nothing but ones. */
static bool bits_finish(writer *b) {
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

size_t phrase_encode(const phrase_dict *d, const void *src, size_t n, void *dst, size_t cap) {
    const uint8_t *p = src;
    uint8_t last[16] = {0}; /* the record's last 7 bytes at most: 8 can be read wherever it ends */
    writer out = {.at = dst, .end = (uint8_t *)dst + cap};
    uint32_t context = d->contexts - 1;
    bool in_last = false;
    for (size_t left = n; left > 0;) {
        if (left < 8 && !in_last) {
            p = memcpy(last, p, left);
            in_last = true;
        }
        uint32_t payload;
        unsigned bytes = phrase_match(&d->match, p, left, &payload);
        uint32_t group = payload >> 16, place = payload & 0xffff;
        const phrase_code *code = &d->code[context * d->groups + group];
        bool longer = place >= code->shorter;
        uint32_t bits = place + (longer ? code->code_longer : code->code);
        if (!bits_put(&out, bits & 0xffffff, code->len + longer)) return PHRASE_NO_ROOM;
        context = code->class;
        p += bytes;
        left -= bytes;
    }
    return bits_finish(&out) ? (size_t)(out.at - (uint8_t *)dst) : PHRASE_NO_ROOM;
}
