/*
 * codec_choose.c: who chooses how a value is encoded.
 *
 *      up to CODEC_PHRASE_MAX bytes   phrases, of the dictionary for its kind; where the training
 *                                     found that it pays for that length, zstd if that is less
 *      up to CODEC_ZSTD_MAX           zstd without a dictionary, which would hardly help, so that
 *                                     the value can stay as it is when the codec changes
 *      more                           as it is: nobody is to wait for its compression
 *
 * and as it is whenever the result would not be smaller, of longer values by a sixteenth.
 */
#include "codec/codec_inside.h"

#include <zstd.h>

/* From the middle of a value, to estimate what all of it comes to: 0.1 to 0.2 ms. Bytes. */
#define PART_BYTES (32u << 10)

static bool worth_zstd(const codec *c, size_t n) {
    if (n > CODEC_ZSTD_MAX) return false;
    return n > CODEC_PHRASE_MAX || c->zstd_classes >> codec_size_class(n) & 1 ||
           (!c->values[0] && n >= CODEC_ZSTD_PLAIN_MIN);
}

/* Writes [escape][kind][frame without magic] into `dst`; CODEC_NO_ROOM if it takes over `cap`. */
static size_t encode_zstd(const codec *c, codec_workspace *w, int level, const void *src, size_t n,
                          uint8_t *dst, size_t cap) {
    size_t bound = ZSTD_compressBound(n);
    uint8_t *frame = workspace_reserve(w, &w->frame, bound);
    if (!frame) return CODEC_NO_ROOM;
    ZSTD_CCtx_reset(w->zstd_write, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(w->zstd_write, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(w->zstd_write, ZSTD_c_dictIDFlag, 0);
    bool dict = c->zstd_write && n <= CODEC_PHRASE_MAX;
    if (dict) ZSTD_CCtx_refCDict(w->zstd_write, c->zstd_write);
    size_t len = ZSTD_compress2(w->zstd_write, frame, bound, src, n);
    if (ZSTD_isError(len) || len - ZSTD_MAGIC_LEN + PREFIX > cap) return CODEC_NO_ROOM;
    dst[0] = ESCAPE_KIND;
    dst[1] = dict ? ZSTD_DICT : ZSTD_PLAIN;
    memcpy(dst + PREFIX, frame + ZSTD_MAGIC_LEN, len - ZSTD_MAGIC_LEN);
    return len - ZSTD_MAGIC_LEN + PREFIX;
}

/* Writes phrase codes; where there is no memory for the cheapest way, the fast one's. */
static size_t encode_with(const phrase_dict *d, codec_workspace *w, codec_pace pace,
                          const void *value, size_t n, uint8_t *dst, size_t cap) {
    void *scratch = NULL;
    if (pace == CODEC_CHEAPEST && n <= CODEC_CHEAPEST_MAX)
        scratch = workspace_reserve(w, &w->parser, phrase_scratch_bytes());
    return scratch ? phrase_encode_cheapest(d, scratch, value, n, dst, cap)
                   : phrase_encode(d, value, n, dst, cap);
}

static uint32_t kind_of(const codec *c, const void *value, size_t n) {
    if (c->kinds) return kinds_of(c->kinds, value, n);
    return n >= CODEC_LONG && c->values[1];
}

/* Writes phrase codes, with their prefix if the value is of the second kind by its length;
 * CODEC_NO_ROOM if they are not worth it. `dst` has n + 1 bytes. */
static size_t encode_phrases(const codec *c, codec_workspace *w, codec_pace pace, const void *value,
                             uint32_t kind, size_t n, uint8_t *dst) {
    size_t prefix = !c->kinds && kind > 0 ? PREFIX : 0;
    if (prefix > 0) {
        dst[0] = ESCAPE_KIND;
        dst[1] = PHRASE_LONG;
    }
    size_t most = phrase_most(n) - prefix;
    size_t len = encode_with(c->values[kind], w, pace, value, n, dst + prefix, most);
    return len == PHRASE_NO_ROOM ? CODEC_NO_ROOM : len + prefix;
}

bool codec_encode_value(const codec *c, codec_workspace *w, codec_buffer *room, codec_effort effort,
                        const void *value, size_t n, codec_value *out) {
    uint8_t *dst = workspace_reserve(w, room, n + 1);
    if (!dst) return false;
    size_t best = CODEC_NO_ROOM;
    double ratio = 1;
    if (n == 0) {
        best = 0;
    } else if (c->values[0] && n <= CODEC_PHRASE_MAX) {
        uint32_t kind = kind_of(c, value, n);
        ratio = phrase_expected_ratio(c->values[kind]);
        best = encode_phrases(c, w, effort.pace, value, kind, n, dst);
    }
    if (n > 0 && worth_zstd(c, n)) {
        size_t limit = best == CODEC_NO_ROOM ? phrase_most(n) : best - 1;
        size_t zstd = encode_zstd(c, w, effort.zstd_level, value, n, dst, limit);
        if (zstd != CODEC_NO_ROOM) best = zstd;
    }
    if (best == CODEC_NO_ROOM) best = encode_raw(value, n, dst, n + 1);
    *out = (codec_value){.bytes = dst, .len = best, .raw_len = n};
    out->fast = effort.pace == CODEC_FAST && c->values[0] && n > 0 && n <= CODEC_CHEAPEST_MAX;
    out->expected_len = n > CODEC_PHRASE_MAX ? (double)best : (double)n * ratio;
    return true;
}

size_t codec_estimate_len(codec_workspace *w, const void *value, size_t n) {
    static const codec knows_nothing;
    size_t part = n < PART_BYTES ? n : PART_BYTES;
    const uint8_t *from = (const uint8_t *)value + (n - part) / 2;
    uint8_t *dst = workspace_reserve(w, &w->moved, part);
    size_t len = dst ? encode_zstd(&knows_nothing, w, 1, from, part, dst, part) : CODEC_NO_ROOM;
    return len == CODEC_NO_ROOM ? n : (size_t)((double)n * (double)len / (double)part);
}

bool codec_is_common(const void *src, size_t n) {
    const uint8_t *bytes = src;
    if (n == 0) return false;
    if (bytes[0] == ESCAPE_RAW) return n > CODEC_PHRASE_MAX + 1;
    if (n <= PREFIX || bytes[0] != ESCAPE_KIND || bytes[1] != ZSTD_PLAIN) return false;
    size_t len = codec_frame_content(bytes, n);
    return len != CODEC_NO_ROOM && len > CODEC_PHRASE_MAX;
}

double codec_expected_len(const codec *c, size_t n) {
    return c->values[0] ? (double)n * c->long_ratio / 1e6 : (double)n;
}
