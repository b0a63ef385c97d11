/* keyspace.c: from a user's key to its map and record. See keyspace.h. */
#include "keyspace.h"

#include "core/siphash.h"
#include "core/stem.h"

#include <stdio.h>

/* Which map a key belongs to must be the same everywhere, so this hash has no secret. Who chooses
 * keys that share a map gains nothing: within the map, the hash is keyed. */
static const uint64_t partition_secret[2] = {0x636b762d70617274ULL, 0x6974696f6e2d6b31ULL};

static RedisModuleString **names; /* of the maps' Redis keys, made when first needed */

static RedisModuleString *map_name(const uint8_t *key, size_t len) {
    uint8_t suffix;
    size_t stem_len = stem_split(key, len, &suffix);
    uint64_t hash = siphash13(key, stem_len, partition_secret);
    uint32_t n = (uint32_t)(hash % (uint64_t)ckv.config.maps);
    if (!names) names = RedisModule_Calloc((size_t)ckv.config.maps, sizeof *names);
    if (!names[n]) names[n] = RedisModule_CreateStringPrintf(NULL, CKV_MAP_PREFIX "%u", n);
    return names[n];
}

/* Expired records are deleted when somebody meets them, unless it is a replica that does: there
 * the primary decides. */
static void expire_if_due(lookup *l) {
    int64_t at_ms = map_expiry_ms(&l->pos);
    l->found = at_ms > l->now_ms;
    if (l->found) return;
    int flags = RedisModule_GetContextFlags(l->ctx);
    if (flags & (REDISMODULE_CTX_FLAGS_SLAVE | REDISMODULE_CTX_FLAGS_LOADING)) return;
    keyspace_delete(l);
    ckv.stats.expired++;
    RedisModule_Replicate(l->ctx, "CDEL", "s", l->name);
    keyspace_notify(l, REDISMODULE_NOTIFY_EXPIRED, "expired");
}

bool keyspace_open_quietly(RedisModuleCtx *ctx, RedisModuleString *name, lookup *l) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    l->ctx = ctx;
    l->name = name;
    l->now_ms = ckv_now_ms();
    l->stored = NULL;
    l->stored_there = l->found = false;
    /* Opened for writing even to read: a miss in reading would announce the map's own key. */
    l->handle = RedisModule_OpenKey(ctx, map_name((const uint8_t *)key, len),
                                    REDISMODULE_READ | REDISMODULE_WRITE);
    int type = RedisModule_KeyType(l->handle);
    if (type == REDISMODULE_KEYTYPE_EMPTY) {
        l->key = (map_key){.key = (const uint8_t *)key, .len = len};
        return true;
    }
    if (type != REDISMODULE_KEYTYPE_MODULE ||
        RedisModule_ModuleTypeGetType(l->handle) != ckv.type) {
        RedisModule_CloseKey(l->handle);
        return false;
    }
    l->stored = RedisModule_ModuleTypeGetValue(l->handle);
    maps_list(l->stored, RedisModule_GetSelectedDb(ctx));
    map_key_init(l->stored->m, &l->key, key, len);
    l->stored_there = map_find(l->stored->m, &l->key, &l->pos);
    if (l->stored_there) expire_if_due(l);
    return true;
}

bool keyspace_open(RedisModuleCtx *ctx, RedisModuleString *name, lookup *l) {
    if (keyspace_open_quietly(ctx, name, l)) return true;
    RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    return false;
}

void keyspace_close(lookup *l) { RedisModule_CloseKey(l->handle); }

const uint8_t *keyspace_value(lookup *l, size_t *len) {
    const uint8_t *value = map_value(l->stored->m, &l->pos, len);
    if (!value) RedisModule_ReplyWithError(l->ctx, "ERR the stored value is damaged");
    return value;
}

/* The map of the key that was looked up, made if there is none. NULL: out of memory. */
static map *map_for_writing(lookup *l) {
    if (l->stored) return l->stored->m;
    map *m = map_new(&ckv.codecs, ckv.secret);
    if (!m) return NULL;
    l->stored = maps_wrap(m);
    RedisModule_ModuleTypeSetValue(l->handle, ckv.type, l->stored);
    maps_list(l->stored, RedisModule_GetSelectedDb(l->ctx));
    map_key_init(m, &l->key, l->key.key, l->key.len);
    return m;
}

static bool put_code(lookup *l, const void *value, size_t len, uint16_t code) {
    map *m = map_for_writing(l);
    if (!m || !map_put(m, &l->key, l->stored_there ? &l->pos : NULL, value, len, code,
                       expiry_ticks(l->now_ms))) {
        RedisModule_ReplyWithError(l->ctx, "OOM out of memory");
        return false;
    }
    RedisModule_SignalModifiedKey(l->ctx, l->name);
    return true;
}

bool keyspace_put(lookup *l, const void *value, size_t len, int64_t at_ms) {
    return put_code(l, value, len, expiry_code(at_ms, l->now_ms));
}

bool keyspace_put_keeping_expiry(lookup *l, const void *value, size_t len) {
    uint16_t code =
        l->found ? map_expiry_code(&l->pos, expiry_ticks(l->now_ms)) : (uint16_t)EXPIRY_NONE;
    return put_code(l, value, len, code);
}

bool keyspace_set_expiry(lookup *l, int64_t at_ms) {
    if (!map_set_expiry(l->stored->m, &l->key, &l->pos, expiry_code(at_ms, l->now_ms),
                        expiry_ticks(l->now_ms))) {
        RedisModule_ReplyWithError(l->ctx, "OOM out of memory");
        return false;
    }
    RedisModule_SignalModifiedKey(l->ctx, l->name);
    return true;
}

void keyspace_delete(lookup *l) {
    map_delete(l->stored->m, &l->key, &l->pos, expiry_ticks(l->now_ms));
    l->stored_there = l->found = false;
    RedisModule_SignalModifiedKey(l->ctx, l->name);
    if (l->stored->m->totals.records == 0) {
        RedisModule_DeleteKey(l->handle);
        l->stored = NULL;
    }
}

void keyspace_notify(const lookup *l, int type, const char *event) {
    RedisModule_NotifyKeyspaceEvent(l->ctx, type, event, l->name);
}
