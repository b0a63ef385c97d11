/* codec.c: keys and values, encoded one by one. The format is in codec.h. */
#define ZSTD_STATIC_LINKING_ONLY /* for the allocator parameter */
#include "codec/codec.h"

#include <string.h>
#include <zstd.h>

#define ESCAPE_RAW     0xff
#define ESCAPE_KIND    0xfe
#define ZSTD_PLAIN     0
#define ZSTD_DICT      1
#define PHRASE_LONG    2
#define PREFIX         2 /* escape and kind */
#define ZSTD_MAGIC_LEN 4
/* Without a dictionary zstd finds nothing in less than this. Bytes. */
#define ZSTD_PLAIN_MIN 512
/* The least that a buffer has, bytes; it doubles as values need it. */
#define BUFFER_MIN 4096
/* A buffer that a giant value grew beyond this is given back. Bytes. */
#define BUFFER_KEEP (1u << 20)
/* What was written lately fades by half every time this much has been written. Bytes. */
#define DRIFT_WINDOW (2.0 * (1 << 20))

static codec raw_codec;

/* ---- memory ---------------------------------------------------------------------------------- */

static void *zstd_alloc(void *m, size_t n) {
    return ((const mem *)m)->alloc(n);
}
static void zstd_free(void *m, void *block) {
    if (block) ((const mem *)m)->free(block);
}
static ZSTD_customMem zstd_mem(const mem *m) {
    return (ZSTD_customMem){zstd_alloc, zstd_free, (void *)m};
}

static uint8_t *reserve(codecs *all, codec_buffer *b, size_t n) {
    if (n <= b->cap) return b->bytes;
    size_t cap = BUFFER_MIN;
    while (cap < n) cap *= 2;
    if (n > BUFFER_KEEP) cap = n;
    uint8_t *bytes = all->mem->alloc(cap);
    if (!bytes) return NULL;
    if (b->bytes) all->mem->free(b->bytes);
    *b = (codec_buffer){bytes, cap};
    return bytes;
}

/* ---- the table ------------------------------------------------------------------------------- */

bool codecs_init(codecs *all, const mem *m, int zstd_level) {
    *all = (codecs){.mem = m, .zstd_level = zstd_level};
    all->place[CODEC_RAW] = &raw_codec;
    all->zstd_write = ZSTD_createCCtx_advanced(zstd_mem(m));
    all->zstd_read = ZSTD_createDCtx_advanced(zstd_mem(m));
    if (!all->zstd_write || !all->zstd_read) {
        codecs_free(all);
        return false;
    }
    return true;
}

/* Frees the buffers of more than `keep` bytes. */
static void free_buffers(codecs *all, size_t keep) {
    codec_buffer *buffers[] = {&all->written, &all->moved, &all->decoded, &all->frame};
    for (int i = 0; i < 4; i++) {
        if (buffers[i]->cap <= keep) continue;
        all->mem->free(buffers[i]->bytes);
        *buffers[i] = (codec_buffer){NULL, 0};
    }
}

void codecs_free(codecs *all) {
    for (int i = 1; i < CODECS_MAX; i++)
        if (all->place[i]) codec_free(all->mem, all->place[i]);
    ZSTD_freeCCtx(all->zstd_write);
    ZSTD_freeDCtx(all->zstd_read);
    free_buffers(all, 0);
}

void codecs_trim(codecs *all) {
    free_buffers(all, BUFFER_KEEP);
}

void codecs_clear(codecs *all) {
    codecs cleared;
    if (!codecs_init(&cleared, all->mem, all->zstd_level)) return;
    cleared.count_uses = all->count_uses;
    codecs_free(all);
    *all = cleared;
}

uint32_t codecs_add(codecs *all, codec *c) {
    for (uint32_t i = 1; i < CODECS_MAX; i++) {
        if (all->place[i]) continue;
        all->place[i] = c;
        return i;
    }
    return CODECS_MAX;
}

void codecs_remove(codecs *all, uint8_t place) {
    codec_free(all->mem, all->place[place]);
    all->place[place] = NULL;
}

size_t codecs_bytes(const codecs *all) {
    size_t bytes = 0;
    for (int i = 1; i < CODECS_MAX; i++)
        if (all->place[i]) bytes += all->place[i]->bytes;
    return bytes;
}

void codec_free(const mem *m, codec *c) {
    if (c->keys) phrase_free(c->keys);
    if (c->values) phrase_free(c->values);
    if (c->long_values) phrase_free(c->long_values);
    codec_forget_zstd_dict(m, c);
    m->free(c);
}

/* What codec_use_zstd_dict() has counted. */
static size_t zstd_dict_bytes(const mem *m, const codec *c) {
    return c->zstd_dict_len + m->usable(c->zstd_write_room) + ZSTD_sizeof_DDict(c->zstd_read);
}

/* ZSTD_createCDict_advanced() of zstd 1.5.5 and older crashes when memory runs out, so the memory
 * is ours. */
bool codec_use_zstd_dict(const mem *m, codec *c, int zstd_level) {
    ZSTD_compressionParameters params = ZSTD_getCParams(zstd_level, 0, c->zstd_dict_len);
    size_t room = ZSTD_estimateCDictSize_advanced(c->zstd_dict_len, params, ZSTD_dlm_byRef);
    c->zstd_write_room = m->alloc(room);
    if (!c->zstd_write_room) return false;
    memset(c->zstd_write_room, 0, room); /* zstd does not set all of it */
    c->zstd_write = ZSTD_initStaticCDict(c->zstd_write_room, room, c->zstd_dict, c->zstd_dict_len,
                                         ZSTD_dlm_byRef, ZSTD_dct_auto, params);
    c->zstd_read = ZSTD_createDDict_advanced(c->zstd_dict, c->zstd_dict_len, ZSTD_dlm_byRef,
                                             ZSTD_dct_auto, zstd_mem(m));
    if (!c->zstd_write || !c->zstd_read) return false;
    c->bytes += zstd_dict_bytes(m, c);
    return true;
}

void codec_forget_zstd_dict(const mem *m, codec *c) {
    if (c->zstd_write && c->zstd_read) c->bytes -= zstd_dict_bytes(m, c);
    if (c->zstd_write_room) m->free(c->zstd_write_room);
    ZSTD_freeDDict(c->zstd_read);
    if (c->zstd_dict) m->free(c->zstd_dict);
    c->zstd_write = NULL;
    c->zstd_write_room = NULL;
    c->zstd_read = NULL;
    c->zstd_dict = NULL;
    c->zstd_dict_len = 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static size_t encode_raw(const void *src, size_t n, uint8_t *dst, size_t cap) {
    if (n + 1 > cap) return CODEC_NO_ROOM;
    dst[0] = ESCAPE_RAW;
    memcpy(dst + 1, src, n);
    return n + 1;
}

size_t codec_encode_key(const codecs *all, uint8_t place, const void *key, size_t n, void *dst,
                        size_t cap) {
    const codec *c = all->place[place];
    if (n == 0) return 0;
    if (c->keys) {
        size_t len = phrase_encode(c->keys, key, n, dst, n < cap ? n : cap);
        if (len != PHRASE_NO_ROOM) return len;
    }
    return encode_raw(key, n, dst, cap);
}

size_t codec_decode_key(const codecs *all, uint8_t place, const void *src, size_t n, void *dst,
                        size_t cap) {
    const codec *c = all->place[place];
    if (n == 0) return 0;
    if (*(const uint8_t *)src == ESCAPE_RAW) {
        if (n - 1 > cap) return CODEC_NO_ROOM;
        memcpy(dst, (const uint8_t *)src + 1, n - 1);
        return n - 1;
    }
    size_t len = c && c->keys ? phrase_decode(c->keys, src, n, dst, cap) : CODEC_NO_ROOM;
    return len == PHRASE_CORRUPT ? CODEC_NO_ROOM : len;
}

/* ---- values ---------------------------------------------------------------------------------- */

static unsigned size_class(size_t n) {
    return 63u - (unsigned)__builtin_clzll(n);
}

static bool worth_zstd(const codec *c, size_t n) {
    if (n > CODEC_ZSTD_MAX) return false;
    return n > CODEC_PHRASE_MAX || c->zstd_classes >> size_class(n) & 1 ||
           (!c->values && n >= ZSTD_PLAIN_MIN);
}

/* Writes [escape][kind][frame without magic] into `dst`; CODEC_NO_ROOM if it takes over `cap`. */
static size_t encode_zstd(codecs *all, const codec *c, const void *src, size_t n, uint8_t *dst,
                          size_t cap) {
    size_t bound = ZSTD_compressBound(n);
    uint8_t *frame = reserve(all, &all->frame, bound);
    if (!frame) return CODEC_NO_ROOM;
    ZSTD_CCtx_reset(all->zstd_write, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(all->zstd_write, ZSTD_c_compressionLevel, all->zstd_level);
    ZSTD_CCtx_setParameter(all->zstd_write, ZSTD_c_dictIDFlag, 0);
    if (c->zstd_write) ZSTD_CCtx_refCDict(all->zstd_write, c->zstd_write);
    size_t len = ZSTD_compress2(all->zstd_write, frame, bound, src, n);
    if (ZSTD_isError(len) || len - ZSTD_MAGIC_LEN + PREFIX > cap) return CODEC_NO_ROOM;
    dst[0] = ESCAPE_KIND;
    dst[1] = c->zstd_write ? ZSTD_DICT : ZSTD_PLAIN;
    memcpy(dst + PREFIX, frame + ZSTD_MAGIC_LEN, len - ZSTD_MAGIC_LEN);
    return len - ZSTD_MAGIC_LEN + PREFIX;
}

/* Writes phrase codes, with their prefix if the value is a long one; CODEC_NO_ROOM if they take
 * more than the value itself. `dst` has n + 1 bytes. */
static size_t encode_phrases(const codec *c, const void *value, size_t n, uint8_t *dst) {
    if (n < CODEC_LONG || !c->long_values) return phrase_encode(c->values, value, n, dst, n);
    dst[0] = ESCAPE_KIND;
    dst[1] = PHRASE_LONG;
    size_t len = phrase_encode(c->long_values, value, n, dst + PREFIX, n - PREFIX);
    return len == PHRASE_NO_ROOM ? CODEC_NO_ROOM : len + PREFIX;
}

static bool encode_value(codecs *all, codec_buffer *room, const void *value, size_t n,
                         codec_value *out) {
    const codec *c = all->place[all->current];
    uint8_t *dst = reserve(all, room, n + 1);
    if (!dst) return false;
    size_t best = CODEC_NO_ROOM;
    if (n == 0)
        best = 0;
    else if (c->values && n <= CODEC_PHRASE_MAX)
        best = encode_phrases(c, value, n, dst);
    if (n > 0 && worth_zstd(c, n)) {
        size_t limit = best == CODEC_NO_ROOM ? n : best - 1;
        size_t zstd = encode_zstd(all, c, value, n, dst, limit);
        if (zstd != CODEC_NO_ROOM) best = zstd;
    }
    if (best == CODEC_NO_ROOM) best = encode_raw(value, n, dst, n + 1);
    *out = (codec_value){dst, best, n};
    return true;
}

bool codec_is_giant(const void *src, size_t n) {
    return n > CODEC_ZSTD_MAX + 1 && *(const uint8_t *)src == ESCAPE_RAW;
}

bool codec_encode_moved(codecs *all, const void *value, size_t n, codec_value *out) {
    return encode_value(all, &all->moved, value, n, out);
}

/* What the codec makes of a value, in the mean. */
static double expected_len(const codec *c, size_t n) {
    const phrase_dict *dict = n >= CODEC_LONG && c->long_values ? c->long_values : c->values;
    return dict ? (double)n * phrase_expected_ratio(dict) : (double)n;
}

bool codec_encode_new(codecs *all, const void *value, size_t n, codec_value *out) {
    if (!encode_value(all, &all->written, value, n, out)) return false;
    all->written_bytes += n;
    all->recent_encoded += (double)out->len;
    all->recent_expected += expected_len(all->place[all->current], n);
    if (all->recent_expected >= DRIFT_WINDOW) {
        all->recent_encoded /= 2;
        all->recent_expected /= 2;
    }
    return true;
}

/* Rebuilds a whole frame in the table's buffer. Returns its decoded length. */
static size_t open_frame(codecs *all, const uint8_t *src, size_t n, uint8_t **frame) {
    static const uint8_t magic[ZSTD_MAGIC_LEN] = {0x28, 0xb5, 0x2f, 0xfd};
    if (n <= PREFIX || src[1] > ZSTD_DICT) return CODEC_NO_ROOM;
    *frame = reserve(all, &all->frame, n + ZSTD_MAGIC_LEN);
    if (!*frame) return CODEC_NO_ROOM;
    memcpy(*frame, magic, ZSTD_MAGIC_LEN);
    memcpy(*frame + ZSTD_MAGIC_LEN, src + PREFIX, n - PREFIX);
    unsigned long long len = ZSTD_getFrameContentSize(*frame, n - PREFIX + ZSTD_MAGIC_LEN);
    return len > CODEC_ZSTD_MAX ? CODEC_NO_ROOM : (size_t)len; /* includes zstd's error codes */
}

static const uint8_t *decode_zstd(codecs *all, const codec *c, const uint8_t *src, size_t n,
                                  size_t *len) {
    uint8_t *frame;
    size_t content = open_frame(all, src, n, &frame);
    if (content == CODEC_NO_ROOM) return NULL;
    uint8_t *dst = reserve(all, &all->decoded, content);
    if (!dst || (src[1] == ZSTD_DICT && !c->zstd_read)) return NULL;
    size_t frame_len = n - PREFIX + ZSTD_MAGIC_LEN;
    size_t got = src[1] == ZSTD_DICT
                     ? ZSTD_decompress_usingDDict(all->zstd_read, dst, content, frame, frame_len,
                                                  c->zstd_read)
                     : ZSTD_decompressDCtx(all->zstd_read, dst, content, frame, frame_len);
    if (ZSTD_isError(got) || got != content) return NULL;
    *len = content;
    return dst;
}

/* The dictionary whose codes a value is made of and, in *prefix, what stands before them. NULL:
 * none, the value is damaged. */
static const phrase_dict *dict_of(const codec *c, const uint8_t *src, size_t *prefix) {
    if (!c) return NULL;
    if (src[0] != ESCAPE_KIND) return c->values;
    *prefix = PREFIX;
    return c->long_values;
}

static bool is_zstd(const uint8_t *src, size_t n) {
    return src[0] == ESCAPE_KIND && !(n > PREFIX && src[1] == PHRASE_LONG);
}

const uint8_t *codec_decode_value(codecs *all, uint8_t place, const void *src, size_t n,
                                  size_t *len) {
    static const uint8_t nothing[1];
    const codec *c = all->place[place];
    const uint8_t *bytes = src;
    *len = 0;
    if (n == 0) return nothing;
    if (bytes[0] == ESCAPE_RAW) {
        *len = n - 1;
        return bytes + 1;
    }
    if (is_zstd(bytes, n)) return c ? decode_zstd(all, c, bytes, n, len) : NULL;
    size_t prefix = 0;
    const phrase_dict *dict = dict_of(c, bytes, &prefix);
    if (!dict) return NULL;
    /* Most values fit the smallest buffer; no value is longer than what the second try has room
     * for. */
    const size_t rooms[] = {BUFFER_MIN, CODEC_PHRASE_MAX};
    for (int i = 0; i < 2; i++) {
        uint8_t *dst = reserve(all, &all->decoded, rooms[i]);
        if (!dst) return NULL;
        *len = phrase_decode(dict, bytes + prefix, n - prefix, dst, all->decoded.cap);
        if (*len != PHRASE_NO_ROOM) return *len == PHRASE_CORRUPT ? NULL : dst;
    }
    return NULL;
}

size_t codec_value_len(codecs *all, uint8_t place, const void *src, size_t n) {
    const uint8_t *bytes = src;
    uint8_t *frame;
    if (n == 0) return 0;
    if (bytes[0] == ESCAPE_RAW) return n - 1;
    if (is_zstd(bytes, n)) return open_frame(all, bytes, n, &frame);
    size_t prefix = 0;
    const phrase_dict *dict = dict_of(all->place[place], bytes, &prefix);
    size_t len = dict ? phrase_decoded_len(dict, bytes + prefix, n - prefix) : CODEC_NO_ROOM;
    return len == PHRASE_CORRUPT ? CODEC_NO_ROOM : len;
}
