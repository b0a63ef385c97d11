/* codec.c: what a codec owns; keys, and values back from their encoding. The format is in codec.h,
 * how the encoding of a value is chosen in codec_choose.c. */
#include "codec/codec_inside.h"
#include "codec/zstd_mem.h"

#define FRAME_HEAD_MAX 18 /* of a zstd frame, with its magic; bytes */

void codec_free(const mem *m, codec *c) {
    if (c->keys) phrase_free(c->keys);
    for (int i = 0; i < KINDS_MAX && c->values[i]; i++) phrase_free(c->values[i]);
    if (c->kinds) m->free(c->kinds);
    codec_forget_zstd_dict(m, c);
    m->free(c);
}

/* What codec_use_zstd_dict() has counted. */
static size_t zstd_dict_bytes(const mem *m, const codec *c) {
    return c->zstd_dict_len + m->usable(c->zstd_write_room) + ZSTD_sizeof_DDict(c->zstd_read);
}

static size_t write_room(size_t dict_len, ZSTD_compressionParameters params) {
    return ZSTD_estimateCDictSize_advanced(dict_len, params, ZSTD_dlm_byRef);
}

size_t codec_zstd_dict_takes(size_t dict_len, int zstd_level) {
    ZSTD_compressionParameters params = ZSTD_getCParams(zstd_level, 0, dict_len);
    return dict_len + write_room(dict_len, params) +
           ZSTD_estimateDDictSize(dict_len, ZSTD_dlm_byRef);
}

/* ZSTD_createCDict_advanced() of zstd 1.5.5 and older crashes when memory runs out, so the memory
 * is ours. */
bool codec_use_zstd_dict(const mem *m, codec *c, int zstd_level) {
    ZSTD_compressionParameters params = ZSTD_getCParams(zstd_level, 0, c->zstd_dict_len);
    size_t room = write_room(c->zstd_dict_len, params);
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

bool codec_has_copies(const codec *c) {
    for (int i = 0; i < KINDS_MAX && c->values[i]; i++)
        if (phrase_has_copies(c->values[i])) return true;
    return false;
}

bool codec_has_kinds(const codec *c) {
    return c->kinds != NULL;
}

uint32_t codec_kinds(const codec *c) {
    uint32_t kinds = 0;
    while (kinds < KINDS_MAX && c->values[kinds]) kinds++;
    return kinds;
}

void codec_use_kinds(codec *c) {
    uint32_t kinds = codec_kinds(c);
    for (uint32_t i = 0; i < kinds; i++) phrase_set_lead(c->values[i], (2u << i) - 2, i + 1);
}

/* ---- keys ------------------------------------------------------------------------------------ */

size_t codec_encode_key(const codec *c, const void *key, size_t n, void *dst, size_t cap) {
    if (n == 0) return 0;
    if (c->keys) {
        size_t len = phrase_encode(c->keys, key, n, dst, n < cap ? n : cap);
        if (len != PHRASE_NO_ROOM) return len;
    }
    return encode_raw(key, n, dst, cap);
}

size_t codec_decode_key(const codec *c, const void *src, size_t n, void *dst, size_t cap) {
    if (n == 0) return 0;
    if (*(const uint8_t *)src == ESCAPE_RAW) {
        if (n - 1 > cap) return CODEC_NO_ROOM;
        memcpy(dst, (const uint8_t *)src + 1, n - 1);
        return n - 1;
    }
    size_t len = c && c->keys ? phrase_decode(c->keys, src, n, dst, cap) : CODEC_NO_ROOM;
    return len == PHRASE_CORRUPT ? CODEC_NO_ROOM : len;
}

/* ---- values, back ---------------------------------------------------------------------------- */

static const uint8_t magic[ZSTD_MAGIC_LEN] = {0x28, 0xb5, 0x2f, 0xfd};

size_t codec_frame_content(const uint8_t *src, size_t n) {
    uint8_t head[FRAME_HEAD_MAX];
    if (n <= PREFIX || src[1] > ZSTD_DICT) return CODEC_NO_ROOM;
    size_t known = n - PREFIX + ZSTD_MAGIC_LEN;
    if (known > sizeof head) known = sizeof head;
    memcpy(head, magic, ZSTD_MAGIC_LEN);
    memcpy(head + ZSTD_MAGIC_LEN, src + PREFIX, known - ZSTD_MAGIC_LEN);
    unsigned long long len = ZSTD_getFrameContentSize(head, known);
    return len > CODEC_ZSTD_MAX ? CODEC_NO_ROOM : (size_t)len; /* includes zstd's error codes */
}

/* Rebuilds a whole frame in the workspace. Returns its decoded length. */
static size_t open_frame(codec_workspace *w, const uint8_t *src, size_t n, uint8_t **frame) {
    size_t len = codec_frame_content(src, n);
    if (len == CODEC_NO_ROOM) return CODEC_NO_ROOM;
    *frame = workspace_reserve(w, &w->frame, n + ZSTD_MAGIC_LEN);
    if (!*frame) return CODEC_NO_ROOM;
    memcpy(*frame, magic, ZSTD_MAGIC_LEN);
    memcpy(*frame + ZSTD_MAGIC_LEN, src + PREFIX, n - PREFIX);
    return len;
}

static const uint8_t *decode_zstd(const codec *c, codec_workspace *w, const uint8_t *src, size_t n,
                                  size_t *len) {
    uint8_t *frame;
    size_t content = open_frame(w, src, n, &frame);
    if (content == CODEC_NO_ROOM) return NULL;
    uint8_t *dst = workspace_reserve(w, &w->decoded, content);
    if (!dst || (src[1] == ZSTD_DICT && !c->zstd_read)) return NULL;
    size_t frame_len = n - PREFIX + ZSTD_MAGIC_LEN;
    size_t got =
        src[1] == ZSTD_DICT
            ? ZSTD_decompress_usingDDict(w->zstd_read, dst, content, frame, frame_len, c->zstd_read)
            : ZSTD_decompressDCtx(w->zstd_read, dst, content, frame, frame_len);
    if (ZSTD_isError(got) || got != content) return NULL;
    *len = content;
    return dst;
}

/* The dictionary whose codes a value of n bytes is made of and, in *prefix, what stands before
 * them. NULL: none, the value is damaged. Codes take no more bytes than what they are for, which
 * bounds how long it takes to go over them. */
static const phrase_dict *dict_of(const codec *c, const uint8_t *src, size_t n, size_t *prefix) {
    *prefix = 0;
    if (!c || n > PREFIX + CODEC_PHRASE_MAX) return NULL;
    if (c->kinds) {
        uint32_t kind = codec_lead(src[0]);
        return kind < KINDS_MAX ? c->values[kind] : NULL;
    }
    if (src[0] != ESCAPE_KIND) return c->values[0];
    *prefix = PREFIX;
    return c->values[1];
}

static bool is_zstd(const uint8_t *src, size_t n) {
    return src[0] == ESCAPE_KIND && !(n > PREFIX && src[1] == PHRASE_LONG);
}

const uint8_t *codec_decode_value(const codec *c, codec_workspace *w, const void *src, size_t n,
                                  size_t *len) {
    static const uint8_t nothing[1];
    const uint8_t *bytes = src;
    *len = 0;
    if (n == 0) return nothing;
    if (bytes[0] == ESCAPE_RAW) {
        *len = n - 1;
        return bytes + 1;
    }
    if (is_zstd(bytes, n)) return c ? decode_zstd(c, w, bytes, n, len) : NULL;
    size_t prefix;
    const phrase_dict *dict = dict_of(c, bytes, n, &prefix);
    if (!dict) return NULL;
    /* Most values fit the smallest buffer that there is; what the second try has no room for is no
     * value, also where a longer one has left more room. */
    const size_t rooms[] = {1, CODEC_PHRASE_MAX};
    for (int i = 0; i < 2; i++) {
        uint8_t *dst = workspace_reserve(w, &w->decoded, rooms[i]);
        if (!dst) return NULL;
        size_t cap = w->decoded.cap < CODEC_PHRASE_MAX ? w->decoded.cap : CODEC_PHRASE_MAX;
        *len = phrase_decode(dict, bytes + prefix, n - prefix, dst, cap);
        if (*len != PHRASE_NO_ROOM) return *len == PHRASE_CORRUPT ? NULL : dst;
    }
    return NULL;
}

size_t codec_value_len(const codec *c, const void *src, size_t n) {
    const uint8_t *bytes = src;
    if (n == 0) return 0;
    if (bytes[0] == ESCAPE_RAW) return n - 1;
    if (is_zstd(bytes, n)) return codec_frame_content(bytes, n);
    size_t prefix;
    const phrase_dict *dict = dict_of(c, bytes, n, &prefix);
    if (!dict) return CODEC_NO_ROOM;
    size_t len = phrase_decoded_len(dict, bytes + prefix, n - prefix);
    return len > CODEC_PHRASE_MAX ? CODEC_NO_ROOM : len; /* includes phrase's error codes */
}
