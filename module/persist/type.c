/* type.c: ckv's data type. Its callbacks, and the events that move maps about. */
#include "persist/type.h"

#include "background/mover.h"
#include "core/map/map_copy.h"
#include "core/map/map_defrag.h"
#include "keyspace/aof_form.h"
#include "keyspace/maps.h"
#include "keyspace/migration.h"
#include "keyspace/own_records.h"
#include "keyspace/prefixes.h"
#include "keyspace/watched.h"
#include "persist/aof_rewrite.h"
#include "persist/beside.h"
#include "persist/rdb.h"

#include <string.h>

static void free_map(void *value) {
    maps_free(value);
}

/* The value leaves its key: it may be freed on another thread, or come back under another name. */
static void unlink_map(RedisModuleKeyOptCtx *ctx, const void *value) {
    (void)ctx;
    ckv.disturbed++;
    watched_map((keyed_map *)value);
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
    for (uint32_t i = 0; i < d.m->buckets; i++) map_each(d.m, i, digest_record, &d);
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

/* ---- events ---------------------------------------------------------------------------------- */

static void on_flush(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e;
    const RedisModuleFlushInfo *info = data;
    if (sub != REDISMODULE_SUBEVENT_FLUSHDB_START) return;
    ckv.disturbed++;
    watched_db(info->dbnum);
    maps_unlist_db(info->dbnum);
    migration_flushed(info->dbnum);
    if (info->dbnum < 0) own_records_forget();
}

static void on_swap(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)sub;
    const RedisModuleSwapDbInfo *info = data;
    if (info->dbnum_first == info->dbnum_second) return; /* told of as well */
    maps_swap_db(info->dbnum_first, info->dbnum_second);
    mover_begin_anew();
    watched_db_from(info->dbnum_first, info->dbnum_second);
    watched_db_from(info->dbnum_second, info->dbnum_first);
}

static void on_saving(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)data;
    switch (sub) {
    case REDISMODULE_SUBEVENT_PERSISTENCE_AOF_START:
    case REDISMODULE_SUBEVENT_PERSISTENCE_SYNC_AOF_START:
        aof_rewrite_began();
        break;
    case REDISMODULE_SUBEVENT_PERSISTENCE_ENDED:
    case REDISMODULE_SUBEVENT_PERSISTENCE_FAILED:
        aof_rewrite_ended();
        rdb_saving_ended();
        break;
    }
}

static void on_loading(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)data;
    if (sub != REDISMODULE_SUBEVENT_LOADING_ENDED && sub != REDISMODULE_SUBEVENT_LOADING_FAILED) {
        aof_form_loading();
        migration_loading(sub == REDISMODULE_SUBEVENT_LOADING_AOF_START);
        prefixes_loading(true);
        ckv.loadings++;
        rdb_loading_began();
        return;
    }
    prefixes_loading(false);
    rdb_loading_ended();
    migration_loaded(ctx);
    if (maps_any()) aof_form_has_records();
    mover_begin_anew();
}

/* ---- registration ---------------------------------------------------------------------------- */

int type_register(RedisModuleCtx *ctx) {
    int served = RedisModule_GetTypeMethodVersion ? RedisModule_GetTypeMethodVersion() : 4;
    bool optional_aux = served >= REDISMODULE_TYPE_METHOD_VERSION; /* Redis 7.2 and later */
    RedisModuleTypeMethods methods = {
        .version = (uint64_t)(optional_aux ? REDISMODULE_TYPE_METHOD_VERSION : served),
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
    if (!ckv.type) return REDISMODULE_ERR;
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_FlushDB, on_flush);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_SwapDB, on_swap);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Persistence, on_saving);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Loading, on_loading);
    return beside_start(ctx);
}
