/* codec_file.c: a codec as bytes for a file. The format is in codec_file.h. */
#include "codec/codec_file.h"
#include "codec/codec_inside.h"

#include <string.h>

#define TAIL_BYTES 20

static void put_u32(uint8_t *dst, uint32_t n) {
    for (int i = 0; i < 4; i++) dst[i] = (uint8_t)(n >> (8 * i));
}
static uint32_t get_u32(const uint8_t *src) {
    return (uint32_t)src[0] | (uint32_t)src[1] << 8 | (uint32_t)src[2] << 16 |
           (uint32_t)src[3] << 24;
}

static void put_u16(uint8_t *dst, uint16_t n) {
    dst[0] = (uint8_t)n;
    dst[1] = (uint8_t)(n >> 8);
}
static uint16_t get_u16(const uint8_t *src) {
    return (uint16_t)(src[0] | src[1] << 8);
}

static const uint8_t kinds_magic[4] = {0xca, 'k', 'd', 1};
#define KINDS_HEAD     (sizeof kinds_magic + 1 + 4)
#define LONG_RATIO_MAX 1000000u /* what gets no smaller is stored as it is */
#define MODEL_BYTES    (KINDS_LANES + KINDS_FEATURES * KINDS_LANES * 2)

/* ---- saving ---------------------------------------------------------------------------------- */

static size_t dict_size(const phrase_dict *d) {
    return 4 + (d ? phrase_save(d, NULL, 0) : 0);
}

static uint8_t *put_dict(uint8_t *dst, const phrase_dict *d) {
    size_t len = dict_size(d) - 4;
    put_u32(dst, (uint32_t)len);
    if (d) phrase_save(d, dst + 4, len);
    return dst + 4 + len;
}

static size_t kinds_size(const codec *c) {
    size_t bytes = KINDS_HEAD + MODEL_BYTES;
    for (uint32_t i = 0; i < codec_kinds(c); i++) bytes += dict_size(c->values[i]);
    return bytes;
}

static uint8_t *put_model(uint8_t *dst, const kinds_model *model) {
    memcpy(dst, model->kind, KINDS_LANES);
    dst += KINDS_LANES;
    for (uint32_t f = 0; f < KINDS_FEATURES; f++)
        for (uint32_t lane = 0; lane < KINDS_LANES; lane++, dst += 2)
            put_u16(dst, (uint16_t)model->score[f][lane]);
    return dst;
}

static uint8_t *put_kinds(uint8_t *dst, const codec *c) {
    put_u32(dst, (uint32_t)kinds_size(c));
    memcpy(dst + 4, kinds_magic, sizeof kinds_magic);
    dst[4 + sizeof kinds_magic] = (uint8_t)codec_kinds(c);
    put_u32(dst + 4 + sizeof kinds_magic + 1, c->long_ratio);
    dst = put_model(dst + 4 + KINDS_HEAD, c->kinds);
    for (uint32_t i = 0; i < codec_kinds(c); i++) dst = put_dict(dst, c->values[i]);
    return dst;
}

size_t codec_save_size(const codec *c) {
    size_t values = c->kinds ? 4 + kinds_size(c) + dict_size(NULL)
                             : dict_size(c->values[0]) + dict_size(c->values[1]);
    return dict_size(c->keys) + values + 4 + c->zstd_dict_len + TAIL_BYTES;
}

void codec_save(const codec *c, uint8_t *dst) {
    dst = put_dict(dst, c->keys);
    dst = c->kinds ? put_kinds(dst, c) : put_dict(dst, c->values[0]);
    dst = put_dict(dst, c->kinds ? NULL : c->values[1]);
    put_u32(dst, (uint32_t)c->zstd_dict_len);
    if (c->zstd_dict_len) memcpy(dst + 4, c->zstd_dict, c->zstd_dict_len);
    dst += 4 + c->zstd_dict_len;
    put_u32(dst, c->zstd_classes);
    memcpy(dst + 4, &c->data_bytes, 8);
    memcpy(dst + 12, &c->made_ms, 8);
}

bool codec_file_is_of(const codec *c, const uint8_t *src, size_t n) {
    return n >= TAIL_BYTES && !memcmp(src + n - 16, &c->data_bytes, 8) &&
           !memcmp(src + n - 8, &c->made_ms, 8);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* The next part of a file; its length, or -1 if it is cut short. */
static int64_t next_part(const uint8_t **src, const uint8_t *end, const uint8_t **part) {
    if (end - *src < 4) return -1;
    uint32_t len = get_u32(*src);
    *part = *src + 4;
    if ((size_t)(end - *part) < len) return -1;
    *src = *part + len;
    return len;
}

/* Reads a dictionary, or none if it may be left out. False: damaged or out of memory. */
static bool load_dict(const mem *m, const uint8_t **src, const uint8_t *end, bool optional,
                      phrase_dict **d) {
    const uint8_t *part;
    int64_t len = next_part(src, end, &part);
    if (len < 0 || (len == 0 && !optional)) return false;
    if (len > 0) *d = phrase_load(m, part, (size_t)len);
    return len == 0 || *d;
}

/* Scores of other models than can be learned would add up to more than fits. */
static bool load_model(kinds_model *model, uint32_t kinds, const uint8_t *src) {
    memcpy(model->kind, src, KINDS_LANES);
    for (uint32_t lane = 0; lane < KINDS_LANES; lane++)
        if (model->kind[lane] >= kinds) return false;
    src += KINDS_LANES;
    for (uint32_t f = 0; f < KINDS_FEATURES; f++)
        for (uint32_t lane = 0; lane < KINDS_LANES; lane++, src += 2) {
            int16_t score = (int16_t)get_u16(src);
            if (score > 0 || score < KINDS_SCORE_LEAST) return false;
            model->score[f][lane] = score;
        }
    return true;
}

static bool load_kinds(const mem *m, codec *c, const uint8_t *src, const uint8_t *end) {
    if ((size_t)(end - src) < KINDS_HEAD + MODEL_BYTES) return false;
    uint32_t kinds = src[sizeof kinds_magic];
    c->long_ratio = get_u32(src + sizeof kinds_magic + 1);
    if (c->long_ratio > LONG_RATIO_MAX) return false;
    src += KINDS_HEAD;
    if (kinds < 2 || kinds > KINDS_MAX || !(c->kinds = m->alloc(sizeof *c->kinds)) ||
        !load_model(c->kinds, kinds, src))
        return false;
    c->bytes += m->usable(c->kinds);
    src += MODEL_BYTES;
    for (uint32_t i = 0; i < kinds; i++)
        if (!load_dict(m, &src, end, false, &c->values[i])) return false;
    codec_use_kinds(c);
    return src == end;
}

/* Reads the dictionaries for values, of which there may be one for long ones, or one for each kind.
 */
static bool load_values(const mem *m, codec *c, const uint8_t **src, const uint8_t *end) {
    const uint8_t *part, *first = *src;
    int64_t len = next_part(src, end, &part);
    if (len >= (int64_t)sizeof kinds_magic && !memcmp(part, kinds_magic, sizeof kinds_magic)) {
        const uint8_t *none;
        return load_kinds(m, c, part, part + len) && next_part(src, end, &none) == 0;
    }
    *src = first;
    if (!load_dict(m, src, end, false, &c->values[0]) ||
        !load_dict(m, src, end, true, &c->values[1]))
        return false;
    c->long_ratio = (uint32_t)(phrase_expected_ratio(c->values[c->values[1] != NULL]) * 1e6);
    return true;
}

static bool load_zstd(const mem *m, codec *c, const uint8_t **src, const uint8_t *end, int level) {
    const uint8_t *part;
    int64_t len = next_part(src, end, &part);
    if (len <= 0) return len == 0;
    if (!(c->zstd_dict = m->alloc((size_t)len))) return false;
    memcpy(c->zstd_dict, part, (size_t)len);
    c->zstd_dict_len = (size_t)len;
    return codec_use_zstd_dict(m, c, level);
}

codec *codec_load(const mem *m, const uint8_t *src, size_t n, int zstd_level) {
    const uint8_t *end = src + n;
    codec *c = m->alloc(sizeof *c);
    if (!c) return NULL;
    *c = (codec){.bytes = m->usable(c)};
    if (!load_dict(m, &src, end, false, &c->keys) || !load_values(m, c, &src, end) ||
        !load_zstd(m, c, &src, end, zstd_level) || end - src != TAIL_BYTES) {
        codec_free(m, c);
        return NULL;
    }
    c->bytes += phrase_bytes(c->keys);
    for (uint32_t i = 0; i < codec_kinds(c); i++) c->bytes += phrase_bytes(c->values[i]);
    c->zstd_classes = c->zstd_dict ? get_u32(src) : 0;
    memcpy(&c->data_bytes, src + 4, 8);
    memcpy(&c->made_ms, src + 12, 8);
    return c;
}
