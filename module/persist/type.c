/* type.c: ckv's data type. See type.h. */
#include "persist/type.h"

#include "core/map/map_copy.h"
#include "core/map/map_defrag.h"
#include "keyspace/maps.h"
#include "keyspace/watched.h"
#include "persist/aof_rewrite.h"
#include "persist/rdb.h"

static void free_map(void *value) {
    maps_free(value);
}

/* The value leaves its key: it may be freed on another thread, or come back under another name. */
static void unlink_map(RedisModuleKeyOptCtx *ctx, const void *value) {
    (void)ctx;
    ckv.disturbed++;
    watched_leave((keyed_map *)value);
    maps_take_away((keyed_map *)value);
}

static size_t memory_of_map(RedisModuleKeyOptCtx *ctx, const void *value, size_t samples) {
    (void)ctx, (void)samples;
    const keyed_map *s = value;
    return ckv.mem.usable((void *)s) + map_bytes(s->m);
}

/* How much work freeing is: the server does it in the background if it is much, or if none is
 * said to be. */
static size_t free_effort(RedisModuleKeyOptCtx *ctx, const void *value) {
    (void)ctx;
    const map_totals *t = &((const keyed_map *)value)->m->totals;
    return 1 + t->pages + t->large;
}

/* COPY: the same records under another name. */
static void *copy_map(RedisModuleKeyOptCtx *ctx, const void *value) {
    const keyed_map *from = value;
    map *m = map_copy(from->m);
    if (!m) return NULL;
    keyed_map *s = maps_wrap(m, from->home);
    maps_list(s, RedisModule_GetToDbIdFromOptCtx(ctx), RedisModule_GetToKeyNameFromOptCtx(ctx));
    return s;
}

typedef struct digesting {
    RedisModuleDigest *digest;
    map *m;
} digesting;

/* As the server does it with strings: key, value and whether it expires, but not when. */
static bool digest_record(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    const digesting *d = context;
    size_t len;
    const uint8_t *value = map_value(d->m, pos, &len);
    RedisModule_DigestAddStringBuffer(d->digest, (const char *)key, key_len);
    if (value) RedisModule_DigestAddStringBuffer(d->digest, (const char *)value, len);
    RedisModule_DigestAddLongLong(d->digest, map_expiry_ms(pos) != EXPIRY_NEVER);
    RedisModule_DigestEndSequence(d->digest);
    return true;
}

/* The order of the records does not matter: how they lie differs between servers. */
static void digest_map(RedisModuleDigest *digest, void *value) {
    digesting d = {digest, ((keyed_map *)value)->m};
    map_each_record(d.m, digest_record, &d);
}

static void *move_block(void *context, void *block) {
    return RedisModule_DefragAlloc(context, block);
}

/* Goes on where it stopped, bucket by bucket; 1: there is more. */
static int defrag_map(RedisModuleDefragCtx *ctx, RedisModuleString *name, void **value) {
    (void)name;
    map *m = ((keyed_map *)*value)->m;
    unsigned long at = 0;
    if (RedisModule_DefragCursorGet(ctx, &at) != REDISMODULE_OK) at = 0;
    for (; at < m->buckets; at++) {
        map_defrag_bucket(m, (uint32_t)at, move_block, ctx);
        if (RedisModule_DefragShouldStop(ctx) &&
            RedisModule_DefragCursorSet(ctx, at + 1) == REDISMODULE_OK)
            return 1;
    }
    return 0;
}

int type_register(RedisModuleCtx *ctx) {
    int methods_known = RedisModule_GetTypeMethodVersion ? RedisModule_GetTypeMethodVersion() : 4;
    bool optional_aux = methods_known >= REDISMODULE_TYPE_METHOD_VERSION; /* Redis 7.2 and later */
    RedisModuleTypeMethods methods = {
        .version = (uint64_t)(optional_aux ? REDISMODULE_TYPE_METHOD_VERSION : methods_known),
        .rdb_load = rdb_load_map,
        .rdb_save = rdb_save_map,
        .aof_rewrite = aof_rewrite_map,
        .free = free_map,
        .digest = digest_map,
        .mem_usage2 = memory_of_map,
        .free_effort2 = free_effort,
        .unlink2 = unlink_map,
        .defrag = defrag_map,
        .copy2 = copy_map,
        .aux_load = rdb_load_aux,
        .aux_save = optional_aux ? NULL : rdb_save_aux,
        .aux_save2 = optional_aux ? rdb_save_optional_aux : NULL,
        .aux_save_triggers = REDISMODULE_AUX_BEFORE_RDB | REDISMODULE_AUX_AFTER_RDB,
    };
    ckv.type = RedisModule_CreateDataType(ctx, RDB_TYPE_NAME, RDB_TYPE_VERSION, &methods);
    return ckv.type ? REDISMODULE_OK : REDISMODULE_ERR;
}
