/* codec_file.c: a codec as bytes for a file. The format is in codec_file.h. */
#include "codec/codec_file.h"

#include <string.h>

#define TAIL_BYTES 20

static void put_u32(uint8_t *dst, uint32_t n) {
    for (int i = 0; i < 4; i++) dst[i] = (uint8_t)(n >> (8 * i));
}
static uint32_t get_u32(const uint8_t *src) {
    return (uint32_t)src[0] | (uint32_t)src[1] << 8 | (uint32_t)src[2] << 16 |
           (uint32_t)src[3] << 24;
}

size_t codec_save_size(const codec *c) {
    size_t bytes = 4 * 4 + c->zstd_dict_len + TAIL_BYTES;
    bytes += phrase_save(c->keys, NULL, 0) + phrase_save(c->values, NULL, 0);
    return bytes + (c->long_values ? phrase_save(c->long_values, NULL, 0) : 0);
}

void codec_save(const codec *c, uint8_t *dst) {
    const phrase_dict *dicts[3] = {c->keys, c->values, c->long_values};
    for (int i = 0; i < 3; i++) {
        size_t len = dicts[i] ? phrase_save(dicts[i], NULL, 0) : 0;
        put_u32(dst, (uint32_t)len);
        if (dicts[i]) phrase_save(dicts[i], dst + 4, len);
        dst += 4 + len;
    }
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
    if (!load_dict(m, &src, end, false, &c->keys) || !load_dict(m, &src, end, false, &c->values) ||
        !load_dict(m, &src, end, true, &c->long_values) ||
        !load_zstd(m, c, &src, end, zstd_level) || end - src != TAIL_BYTES) {
        codec_free(m, c);
        return NULL;
    }
    c->bytes += phrase_bytes(c->keys) + phrase_bytes(c->values);
    if (c->long_values) c->bytes += phrase_bytes(c->long_values);
    c->zstd_classes = c->zstd_dict ? get_u32(src) : 0;
    memcpy(&c->data_bytes, src + 4, 8);
    memcpy(&c->made_ms, src + 12, 8);
    return c;
}
