/* keyspace.c: from a user's key to its map and record. See keyspace.h. */
#include "keyspace/lookup.h"

#include "background/evict.h"
#include "keyspace/places.h"
#include "server/reply.h"

#include <errno.h>
#include <string.h>

/* Whether a command comes from the primary or from an AOF. Where it was carried out first, what it
 * meets had not expired: the deletion of what has is a command of its own. */
static bool is_repeated(RedisModuleCtx *ctx) {
    int flags = RedisModule_GetContextFlags(ctx);
    return flags & (REDISMODULE_CTX_FLAGS_REPLICATED | REDISMODULE_CTX_FLAGS_LOADING);
}

bool keyspace_may_expire(RedisModuleCtx *ctx) {
    int flags = RedisModule_GetContextFlags(ctx);
    if (flags & (REDISMODULE_CTX_FLAGS_SLAVE | REDISMODULE_CTX_FLAGS_REPLICATED |
                 REDISMODULE_CTX_FLAGS_LOADING))
        return false;
    return !RedisModule_AvoidReplicaTraffic();
}

/* Expired records are deleted when somebody meets them, if this server may. */
static void expire_if_due(lookup *l) {
    int64_t at_ms = map_expiry_ms(&l->pos);
    l->found = at_ms > l->now_ms || is_repeated(l->ctx);
    if (l->found || !keyspace_may_expire(l->ctx)) return;
    keyspace_delete(l);
    ckv.stats.expired++;
    RedisModule_Replicate(l->ctx, "CDEL", "s", l->name);
    keyspace_notify(l, REDISMODULE_NOTIFY_EXPIRED, "expired");
}

/* Opened for writing even to read: a miss in reading would announce the map's own key. */
static RedisModuleKey *open_map(RedisModuleCtx *ctx, uint32_t place) {
    RedisModuleString *name = places_name(place);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    RedisModule_FreeString(ctx, name);
    return key;
}

/* The server is asked to carry out a command of ours, which goes no further than it must. */
static bool asking;

/*
 * While a slot is moved by MIGRATE, its map is on one of two nodes and the server, which looks for
 * the record's key and finds none, sends all commands to the node that imports the slot. Where the
 * map is not, a record must be neither missed nor made. A node serves the slot for good if it would
 * serve the map's own key to anybody: without ASKING, without asking another node. Nobody can say
 * that but the server, and it may change with any command, so it is asked each time; but only when
 * there is no map, which there is in every slot that holds a record.
 */
static bool map_may_be_elsewhere(RedisModuleCtx *ctx, int db, uint32_t place) {
    int followed = REDISMODULE_CTX_FLAGS_REPLICATED | REDISMODULE_CTX_FLAGS_LOADING |
                   REDISMODULE_CTX_FLAGS_SLAVE;
    if (places_layout() != PLACES_SLOTS) return false;
    if (RedisModule_GetContextFlags(ctx) & followed) return false;
    asking = true;
    RedisModule_SelectDb(ckv.ctx, db);
    RedisModuleString *name = places_name(place);
    RedisModuleCallReply *reply = RedisModule_Call(ckv.ctx, "CEXISTS", "s", name);
    RedisModule_FreeString(ckv.ctx, name);
    asking = false;
    if (reply) RedisModule_FreeCallReply(reply);
    return !reply && errno == EPERM;
}

int keyspace_list(RedisModuleCtx *ctx, int db, uint32_t place, stored_map **s) {
    RedisModuleKey *handle = open_map(ctx, place);
    int type = RedisModule_KeyType(handle);
    *s = NULL;
    if (type == REDISMODULE_KEYTYPE_MODULE && RedisModule_ModuleTypeGetType(handle) == ckv.type) {
        *s = RedisModule_ModuleTypeGetValue(handle);
        maps_list(*s, db, place);
    }
    RedisModule_CloseKey(handle);
    return type;
}

/* Asks the server for a map that is not in the table. False: l->error says why not. */
static bool find_map(lookup *l) {
    l->error = NULL;
    l->stored = maps_at(l->db, l->place);
    if (l->stored) return true;
    int type = keyspace_list(l->ctx, l->db, l->place, &l->stored);
    if (l->stored) return true;
    if (type != REDISMODULE_KEYTYPE_EMPTY)
        l->error = ERROR_TYPE;
    else if (map_may_be_elsewhere(l->ctx, l->db, l->place))
        l->error = ERROR_MOVING;
    return !l->error;
}

static void init_key(lookup *l) {
    map_key_init(l->stored->m, &l->key, l->key.key, l->key.len);
    l->secret = l->stored->m->secret[0];
}

const char *keyspace_error(RedisModuleCtx *ctx, RedisModuleString *name) {
    size_t len;
    const uint8_t *key = (const uint8_t *)RedisModule_StringPtrLen(name, &len);
    lookup l = {.ctx = ctx, .db = RedisModule_GetSelectedDb(ctx)};
    l.place = places_of_key(key, len);
    find_map(&l);
    return l.error;
}

bool keyspace_settled(RedisModuleCtx *ctx, RedisModuleString *name) {
    if (places_layout() != PLACES_SLOTS) return true;
    if (asking) {
        RedisModule_ReplyWithNull(ctx);
        return false;
    }
    const char *error = keyspace_error(ctx, name);
    bool moving = error && !strcmp(error, ERROR_MOVING);
    if (moving) RedisModule_ReplyWithError(ctx, error);
    return !moving;
}

void keyspace_begin(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_ms, lookup *l) {
    size_t len;
    const uint8_t *key = (const uint8_t *)RedisModule_StringPtrLen(name, &len);
    l->ctx = ctx;
    l->name = name;
    l->db = RedisModule_GetSelectedDb(ctx);
    l->place = places_of_key(key, len);
    l->now_ms = now_ms;
    l->stored_there = l->found = false;
    l->key.key = key;
    l->key.len = len;
    l->stored = maps_at(l->db, l->place);
    if (l->stored) init_key(l);
}

bool keyspace_find_begun(lookup *l) {
    bool begun = l->stored != NULL;
    if (!find_map(l)) return false;
    if (!l->stored) return true;
    /* Another key of the command may have deleted the map and made another, at the same address. */
    if (!begun || l->secret != l->stored->m->secret[0]) init_key(l);
    l->stored_there = map_find(l->stored->m, &l->key, &l->pos);
    if (l->stored_there) expire_if_due(l);
    return true;
}

bool keyspace_find_quietly(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_ms,
                           lookup *l) {
    keyspace_begin(ctx, name, now_ms, l);
    return keyspace_find_begun(l);
}

bool keyspace_find(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_ms, lookup *l) {
    if (keyspace_find_quietly(ctx, name, now_ms, l)) return true;
    RedisModule_ReplyWithError(ctx, l->error);
    return false;
}

const uint8_t *keyspace_value(lookup *l, size_t *len) {
    const uint8_t *value = map_value(l->stored->m, &l->pos, len);
    if (!value) RedisModule_ReplyWithError(l->ctx, "ERR the stored value is damaged");
    return value;
}

bool keyspace_reply_value(lookup *l) {
    if (!l->found) {
        RedisModule_ReplyWithNull(l->ctx);
        return true;
    }
    size_t len;
    const uint8_t *value = keyspace_value(l, &len);
    if (value) RedisModule_ReplyWithStringBuffer(l->ctx, (const char *)value, len);
    return value != NULL;
}

void keyspace_note_read(lookup *l) {
    if (l->found) {
        ckv.stats.hits++;
        if (evict_counts_uses()) map_note_use(l->stored->m, &l->pos);
        return;
    }
    ckv.stats.misses++;
    keyspace_notify(l, REDISMODULE_NOTIFY_KEY_MISS, "keymiss");
}

stored_map *keyspace_make_map(RedisModuleCtx *ctx, int db, uint32_t place) {
    stored_map *s = maps_at(db, place);
    if (s) return s;
    RedisModuleKey *handle = open_map(ctx, place);
    map *m = NULL;
    if (RedisModule_KeyType(handle) == REDISMODULE_KEYTYPE_EMPTY)
        m = map_new(&ckv.shared, ckv.secret);
    if (m) {
        s = maps_wrap(m);
        RedisModule_ModuleTypeSetValue(handle, ckv.type, s);
        maps_list(s, db, place);
    }
    RedisModule_CloseKey(handle);
    return s;
}

/* The map of the key that was looked up, made if there is none. NULL: out of memory. */
static map *map_for_writing(lookup *l) {
    if (l->stored) return l->stored->m;
    l->stored = keyspace_make_map(l->ctx, l->db, l->place);
    if (!l->stored) return NULL;
    init_key(l);
    return l->stored->m;
}

static bool reply_out_of_memory(const lookup *l) {
    RedisModule_ReplyWithError(l->ctx, ERROR_MEMORY);
    return false;
}

static bool put_code(lookup *l, const codec_value *value, uint16_t code) {
    if (evict_refuses() && !is_repeated(l->ctx)) {
        RedisModule_ReplyWithError(l->ctx, ERROR_LIMIT);
        return false;
    }
    map *m = map_for_writing(l);
    l->key.uses = evict_uses_of_write();
    evict_note_written(value->len);
    const map_pos *pos = l->stored_there ? &l->pos : NULL;
    if (!m || !map_put(m, &l->key, pos, value, code, expiry_ticks(l->now_ms)))
        return reply_out_of_memory(l);
    RedisModule_SignalModifiedKey(l->ctx, l->name);
    if (!pos) keyspace_notify(l, REDISMODULE_NOTIFY_NEW, "new");
    return true;
}

bool keyspace_put_encoded(lookup *l, const codec_value *value, int64_t at_ms) {
    return put_code(l, value, expiry_code(at_ms, l->now_ms));
}

bool keyspace_put(lookup *l, const void *value, size_t len, int64_t at_ms) {
    codec_value encoded;
    if (!map_encode(&ckv.shared, value, len, &encoded)) return reply_out_of_memory(l);
    return keyspace_put_encoded(l, &encoded, at_ms);
}

bool keyspace_put_encoded_keeping_expiry(lookup *l, const codec_value *value) {
    uint16_t code =
        l->found ? map_expiry_code(&l->pos, expiry_ticks(l->now_ms)) : (uint16_t)EXPIRY_NONE;
    return put_code(l, value, code);
}

bool keyspace_put_keeping_expiry(lookup *l, const void *value, size_t len) {
    codec_value encoded;
    if (!map_encode(&ckv.shared, value, len, &encoded)) return reply_out_of_memory(l);
    return keyspace_put_encoded_keeping_expiry(l, &encoded);
}

bool keyspace_set_expiry(lookup *l, int64_t at_ms) {
    if (!map_set_expiry(l->stored->m, &l->key, &l->pos, expiry_code(at_ms, l->now_ms),
                        expiry_ticks(l->now_ms)))
        return reply_out_of_memory(l);
    RedisModule_SignalModifiedKey(l->ctx, l->name);
    return true;
}

void keyspace_drop_if_empty(RedisModuleCtx *ctx, const stored_map *s) {
    if (s->m->totals.records > 0) return;
    RedisModuleKey *handle = open_map(ctx, s->place);
    RedisModule_DeleteKey(handle);
    RedisModule_CloseKey(handle);
}

void keyspace_delete(lookup *l) {
    map_delete(l->stored->m, &l->key, &l->pos, expiry_ticks(l->now_ms));
    l->stored_there = l->found = false;
    RedisModule_SignalModifiedKey(l->ctx, l->name);
    keyspace_drop_if_empty(l->ctx, l->stored);
    l->stored = maps_at(l->db, l->place);
}

void keyspace_notify(const lookup *l, int type, const char *event) {
    RedisModule_NotifyKeyspaceEvent(l->ctx, type, event, l->name);
}

bool keyspace_expire(lookup *l, int64_t at_ms) {
    if (at_ms <= l->now_ms && keyspace_may_expire(l->ctx)) {
        keyspace_delete(l);
        RedisModule_Replicate(l->ctx, "CDEL", "s", l->name);
        keyspace_notify(l, REDISMODULE_NOTIFY_GENERIC, "del");
        return true;
    }
    if (!keyspace_set_expiry(l, at_ms)) return false;
    RedisModule_Replicate(l->ctx, "CPEXPIREAT", "sl", l->name, (long long)at_ms);
    keyspace_notify(l, REDISMODULE_NOTIFY_GENERIC, "expire");
    return true;
}

bool keyspace_persist(lookup *l) {
    if (map_expiry_ms(&l->pos) == EXPIRY_NEVER) return true;
    if (!keyspace_set_expiry(l, EXPIRY_NEVER)) return false;
    RedisModule_Replicate(l->ctx, "CPERSIST", "s", l->name);
    keyspace_notify(l, REDISMODULE_NOTIFY_GENERIC, "persist");
    return true;
}
