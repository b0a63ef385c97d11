#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

struct Encoder {
    Encoding encoding;
    size_t longest, room;
    char *encoded, *decoded;
    ZSTD_CCtx *compress;
    ZSTD_DCtx *decompress;
};

Encoder *encoder_create(Encoding encoding, size_t longest) {
    Encoder *e = allocate(sizeof *e);
    e->encoding = encoding;
    e->longest = longest;
    if (encoding == ENCODE_NONE) return e;
    size_t zstd = ZSTD_compressBound(longest), zlib = compressBound(longest);
    e->room = zstd > zlib ? zstd : zlib;
    e->encoded = allocate(e->room);
    e->decoded = allocate(longest);
    e->compress = ZSTD_createCCtx();
    e->decompress = ZSTD_createDCtx();
    if (!e->compress || !e->decompress) fail(1, "out of memory");
    return e;
}

void encoder_free(Encoder *e) {
    free(e->encoded);
    free(e->decoded);
    ZSTD_freeCCtx(e->compress);
    ZSTD_freeDCtx(e->decompress);
    free(e);
}

Value encoder_encode(Encoder *e, const Value *value) {
    if (e->encoding == ENCODE_NONE) return *value;
    if (e->encoding == ENCODE_ZSTD) {
        size_t n = ZSTD_compressCCtx(e->compress, e->encoded, e->room, value->bytes, value->length,
                                     ZSTD_CLEVEL_DEFAULT);
        if (ZSTD_isError(n)) fail(1, "zstd: %s", ZSTD_getErrorName(n));
        return (Value){e->encoded, n};
    }
    uLongf n = e->room;
    if (compress((Bytef *)e->encoded, &n, (const Bytef *)value->bytes, value->length) != Z_OK)
        fail(1, "zlib cannot compress a value");
    return (Value){e->encoded, n};
}

void encoder_check(Encoder *e, Value stored, const Value *expected, const char *key) {
    Value got = stored;
    if (e->encoding == ENCODE_ZSTD) {
        size_t n =
            ZSTD_decompressDCtx(e->decompress, e->decoded, e->longest, stored.bytes, stored.length);
        if (ZSTD_isError(n)) fail(1, "the value of %s does not decompress", key);
        got = (Value){e->decoded, n};
    } else if (e->encoding == ENCODE_ZLIB) {
        uLongf n = e->longest;
        if (uncompress((Bytef *)e->decoded, &n, (const Bytef *)stored.bytes, stored.length) != Z_OK)
            fail(1, "the value of %s does not decompress", key);
        got = (Value){e->decoded, n};
    }
    if (got.length != expected->length || memcmp(got.bytes, expected->bytes, got.length) != 0)
        fail(1, "the value of %s differs from what was stored", key);
}
