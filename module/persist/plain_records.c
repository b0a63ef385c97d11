/* plain_records.c: a map as plain records. See plain_records.h. */
#include "persist/plain_records.h"

#include "server/clock.h"

#include <string.h>
#include <zstd.h>

/* Records are packed together until they come to this many bytes. */
#define BLOCK_BYTES (256u << 10)
/* What a block can't be more than: a key and a value of 512 MB each, and their head. */
#define BLOCK_MAX (1100ULL << 20)
#define LEVEL     1 /* nobody is served meanwhile; 3 took twice as long for 8% fewer bytes */
/* What is written at that level needs no more to be read. */
#define WINDOW_LOG_MAX 23
/* Room for a block that is unpacked: this at first, and more only as it is filled. */
#define UNPACKED_FIRST (1u << 20)

typedef struct record_head {
    uint32_t key_len, value_len;
    int64_t at_ms; /* the first ms in which it has expired; EXPIRY_NEVER; 0: it has */
} record_head;

static bool has_moment(int64_t at_ms) {
    return at_ms > 0 && at_ms != EXPIRY_NEVER;
}

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct packing {
    RedisModuleIO *io;
    map *m;
    uint8_t *bytes;
    size_t used, cap;
} packing;

static void flush(packing *p) {
    if (p->used == 0) return;
    size_t bound = ZSTD_compressBound(p->used);
    char *out = RedisModule_Alloc(bound);
    size_t n = ZSTD_compress(out, bound, p->bytes, p->used, LEVEL);
    RedisModule_SaveUnsigned(p->io, p->used);
    RedisModule_SaveStringBuffer(p->io, out, n);
    RedisModule_Free(out);
    p->used = 0;
}

static bool pack(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    packing *p = context;
    size_t len;
    const uint8_t *value = map_value(p->m, pos, &len);
    if (!value) return true; /* damaged beyond reading: there is nothing to save */
    record_head head = {(uint32_t)key_len, (uint32_t)len, map_expiry_ms(pos)};
    head.at_ms += has_moment(head.at_ms);
    size_t wanted = p->used + sizeof head + key_len + len;
    if (wanted > p->cap) {
        p->cap = wanted + BLOCK_BYTES;
        p->bytes = RedisModule_Realloc(p->bytes, p->cap);
    }
    memcpy(p->bytes + p->used, &head, sizeof head);
    memcpy(p->bytes + p->used + sizeof head, key, key_len);
    memcpy(p->bytes + p->used + sizeof head + key_len, value, len);
    p->used = wanted;
    if (p->used >= BLOCK_BYTES) flush(p);
    return true;
}

void plain_records_save(RedisModuleIO *io, map *m) {
    packing p = {.io = io, .m = m};
    map_each_record(m, pack, &p);
    flush(&p);
    RedisModule_SaveUnsigned(io, 0); /* no further block */
    RedisModule_Free(p.bytes);
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool put_record(map *m, const uint8_t *key, const record_head *head, int64_t now_ms) {
    int64_t at_ms = head->at_ms - has_moment(head->at_ms);
    return map_store(m, key, head->key_len, key + head->key_len, head->value_len, at_ms, now_ms);
}

static bool unpack(map *m, const uint8_t *bytes, size_t n) {
    int64_t now_ms = clock_now_ms();
    size_t at = 0;
    while (at < n) {
        record_head head;
        if (n - at < sizeof head) return false;
        memcpy(&head, bytes + at, sizeof head);
        at += sizeof head;
        if (head.key_len > n - at || head.value_len > n - at - head.key_len) return false;
        if (!put_record(m, bytes + at, &head, now_ms)) return false;
        at += (size_t)head.key_len + head.value_len;
    }
    return true;
}

/* A block of `size` bytes that begins as the old one does, which is freed. NULL: out of memory. */
static uint8_t *enlarge(uint8_t *old, size_t used, size_t size) {
    uint8_t *bytes = RedisModule_TryAlloc(size);
    if (bytes && used) memcpy(bytes, old, used);
    RedisModule_Free(old);
    return bytes;
}

/* Decompresses n bytes to exactly `raw`. The room for them grows with what has come out: a damaged
 * head may promise more than there is memory. NULL: damaged or out of memory. */
static uint8_t *decompress(ZSTD_DCtx *zstd, const char *packed, size_t n, size_t raw) {
    ZSTD_inBuffer in = {packed, n, 0};
    ZSTD_outBuffer out = {NULL, 0, 0};
    size_t more = 1;
    while (more && !ZSTD_isError(more)) {
        /* It stops where it is full, or where the input ends too soon. */
        if (out.pos < out.size || out.size == raw) break;
        size_t size = out.size ? 2 * out.size : UNPACKED_FIRST;
        out.size = size < raw ? size : raw;
        out.dst = enlarge(out.dst, out.pos, out.size);
        if (!out.dst) return NULL;
        more = ZSTD_decompressStream(zstd, &out, &in);
    }
    if (more == 0 && out.pos == raw && in.pos == n) return out.dst;
    RedisModule_Free(out.dst);
    return NULL;
}

/* Unpacks one block of `raw` bytes. */
static bool load_block(RedisModuleIO *io, map *m, uint64_t raw) {
    size_t n;
    char *packed = RedisModule_LoadStringBuffer(io, &n);
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    uint8_t *bytes = NULL;
    if (packed && zstd && raw <= BLOCK_MAX) {
        ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
        bytes = decompress(zstd, packed, n, raw);
    }
    bool done = bytes && unpack(m, bytes, raw);
    ZSTD_freeDCtx(zstd);
    RedisModule_Free(packed);
    RedisModule_Free(bytes);
    return done;
}

map *plain_records_load(RedisModuleIO *io) {
    map *m = map_new(&ckv.shared, ckv.secret);
    uint64_t raw;
    while (m && (raw = RedisModule_LoadUnsigned(io)) > 0) {
        if (!RedisModule_IsIOError(io) && load_block(io, m, raw)) continue;
        map_free(m);
        m = NULL;
    }
    if (m && RedisModule_IsIOError(io)) {
        map_free(m);
        m = NULL;
    }
    return m;
}
