/* pages.c: a map as its pages are. See pages.h. */
#include "persist/pages.h"

#include "core/map/map_save.h"

/* Buckets are written in pieces of about this many bytes. */
#define PIECE_BYTES (256u << 10)

typedef struct saving {
    RedisModuleIO *io;
    uint64_t larges;
} saving;

static bool count_large(void *context, large **l) {
    (void)l;
    ((saving *)context)->larges++;
    return true;
}

static bool save_large(void *context, large **at) {
    size_t n = map_large_size(*at);
    uint8_t *copy = RedisModule_Alloc(n);
    map_large_save(*at, copy);
    RedisModule_SaveStringBuffer(((saving *)context)->io, (char *)copy, n);
    RedisModule_Free(copy);
    return true;
}

/* Writes buckets from `first` until a piece is full; returns the next one. */
static uint32_t save_piece(RedisModuleIO *io, map *m, uint32_t first, uint8_t *piece) {
    size_t used = 0;
    uint32_t end = first;
    saving s = {.io = io};
    while (end < m->buckets && (end == first || used + map_bucket_size(m, end) <= PIECE_BYTES)) {
        used += map_bucket_save(m, end, piece + used);
        map_each_large(m, end, count_large, &s);
        end++;
    }
    RedisModule_SaveUnsigned(io, end - first);
    RedisModule_SaveUnsigned(io, s.larges);
    RedisModule_SaveStringBuffer(io, (char *)piece, used);
    for (uint32_t i = first; i < end; i++) map_each_large(m, i, save_large, &s);
    return end;
}

void pages_save(RedisModuleIO *io, map *m) {
    size_t most = PIECE_BYTES, all = 0;
    for (uint32_t i = 0; i < m->buckets; i++) {
        size_t bytes = map_bucket_size(m, i);
        if (bytes > most) most = bytes;
        all += bytes;
    }
    uint8_t *piece = RedisModule_Alloc(all < most ? all : most);
    uint64_t head[MAP_HEAD];
    map_save_head(m, head);
    for (int i = 0; i < MAP_HEAD; i++) RedisModule_SaveUnsigned(io, head[i]);
    for (uint32_t i = 0; i < m->buckets;) i = save_piece(io, m, i, piece);
    RedisModule_Free(piece);
}

typedef struct loading {
    RedisModuleIO *io;
    map *m;
    const uint8_t *codec_ids;
} loading;

static bool load_large(void *context, large **at) {
    loading *l = context;
    size_t n;
    char *bytes = RedisModule_LoadStringBuffer(l->io, &n);
    if (!bytes) return false;
    *at = map_large_load(l->m, (uint8_t *)bytes, n);
    RedisModule_Free(bytes);
    return *at != NULL;
}

/* Reads a piece; the number of buckets in it, 0 if it is damaged. */
static uint32_t load_piece(loading *l, uint32_t first, uint32_t buckets) {
    uint64_t count = RedisModule_LoadUnsigned(l->io), larges = RedisModule_LoadUnsigned(l->io);
    size_t n, at = 0, read = 1;
    (void)larges; /* for readers of the file that have no pages to count them in */
    char *piece = RedisModule_LoadStringBuffer(l->io, &n);
    if (!piece || count == 0 || count > buckets - first) {
        if (piece) RedisModule_Free(piece);
        return 0;
    }
    for (uint32_t i = 0; i < count && read; i++) {
        read = map_bucket_load(l->m, first + i, (uint8_t *)piece + at, n - at, l->codec_ids);
        at += read;
    }
    RedisModule_Free(piece);
    for (uint32_t i = 0; i < count && read; i++)
        if (!map_each_large(l->m, first + i, load_large, l)) read = 0;
    return read && at == n ? (uint32_t)count : 0;
}

map *pages_load(RedisModuleIO *io, const uint8_t codec_ids[256]) {
    uint64_t head[MAP_HEAD];
    for (int i = 0; i < MAP_HEAD; i++) head[i] = RedisModule_LoadUnsigned(io);
    if (RedisModule_IsIOError(io)) return NULL;
    loading l = {io, map_load_head(&ckv.shared, head), codec_ids};
    uint32_t buckets = (uint32_t)head[MAP_HEAD_BUCKETS];
    for (uint32_t i = 0, read; l.m && i < buckets; i += read) {
        read = load_piece(&l, i, buckets);
        if (read) continue;
        map_free(l.m);
        l.m = NULL;
    }
    if (l.m) map_load_end(l.m, head);
    return l.m;
}
