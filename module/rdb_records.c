/* rdb_records.c: a map as plain records. See rdb_records.h. */
#include "rdb_records.h"

#include "rdb.h"

#include <string.h>
#include <zstd.h>

/* Records are packed together until they come to this many bytes. */
#define BLOCK_BYTES (256u << 10)
/* What a block can't be more than: a key and a value of 512 MB each, and their head. */
#define BLOCK_MAX (1100ULL << 20)
#define LEVEL     3

typedef struct record_head {
    uint32_t key_len, value_len;
    int64_t at_ms;
} record_head;

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

void records_save(RedisModuleIO *io, map *m) {
    packing p = {.io = io, .m = m};
    for (uint32_t i = 0; i < m->buckets; i++) map_each(m, i, pack, &p);
    flush(&p);
    RedisModule_SaveUnsigned(io, 0); /* no further block */
    RedisModule_Free(p.bytes);
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool put_record(map *m, const uint8_t *key, const record_head *head, int64_t now_ms) {
    map_key k;
    map_pos pos;
    if (head->at_ms != EXPIRY_NEVER && head->at_ms - now_ms > EXPIRY_TTL_MAX_MS) return false;
    map_key_init(m, &k, key, head->key_len);
    bool there = map_find(m, &k, &pos);
    codec_value value;
    return codec_encode_new(m->codecs, key + head->key_len, head->value_len, &value) &&
           map_put(m, &k, there ? &pos : NULL, &value, expiry_code(head->at_ms, now_ms),
                   expiry_ticks(now_ms));
}

static bool unpack(map *m, const uint8_t *bytes, size_t n) {
    int64_t now_ms = ckv_now_ms();
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

/* Unpacks one block of `raw` bytes. */
static bool load_block(RedisModuleIO *io, map *m, uint64_t raw) {
    size_t n;
    char *packed = RedisModule_LoadStringBuffer(io, &n);
    if (!packed) return false;
    bool honest = raw <= BLOCK_MAX && ZSTD_getFrameContentSize(packed, n) == raw;
    uint8_t *bytes = honest ? RedisModule_TryAlloc(raw) : NULL;
    bool done = bytes && ZSTD_decompress(bytes, raw, packed, n) == raw && unpack(m, bytes, raw);
    RedisModule_Free(packed);
    RedisModule_Free(bytes);
    return done;
}

map *records_load(RedisModuleIO *io) {
    map *m = map_new(&ckv.codecs, ckv.secret);
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

/* ---- AOF ------------------------------------------------------------------------------------- */

static bool emit(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    packing *p = context;
    size_t len;
    const uint8_t *value = map_value(p->m, pos, &len);
    int64_t at_ms = map_expiry_ms(pos);
    if (!value) return true;
    if (at_ms == EXPIRY_NEVER)
        RedisModule_EmitAOF(p->io, "CSET", "bb", key, key_len, value, len);
    else
        RedisModule_EmitAOF(p->io, "CSET", "bbcl", key, key_len, value, len, "PXAT",
                            (long long)(at_ms > 0 ? at_ms : 1));
    return true;
}

void rdb_rewrite_map(RedisModuleIO *io, RedisModuleString *key, void *value) {
    (void)key;
    packing p = {.io = io, .m = ((stored_map *)value)->m};
    for (uint32_t i = 0; i < p.m->buckets; i++) map_each(p.m, i, emit, &p);
}
