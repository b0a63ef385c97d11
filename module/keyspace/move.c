/* move.c: a string moves between ckv and the server's own keys. See move.h. */
#include "keyspace/move.h"

#include "keyspace/map_home.h"
#include "keyspace/places.h"
#include "server/clock.h"
#include "server/quiet.h"

/* A record as the map sees it. */
typedef struct found {
    keyed_map *in;
    map_key key;
    map_pos pos;
} found;

/* Whether there may be a record of that name, whatever the database. */
static bool may_be(const char *key, size_t len) {
    return key_shapes_may_hold(&ckv.shared.shapes, key, len);
}

static bool find(int db, uint32_t place, const char *key, size_t len, found *f) {
    f->in = maps_at(db, place);
    if (!f->in) return false;
    map_key_init(f->in->m, &f->key, key, len);
    return map_find(f->in->m, &f->key, &f->pos);
}

static bool find_name(RedisModuleCtx *ctx, RedisModuleString *name, found *f) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    return may_be(key, len) && find(RedisModule_GetSelectedDb(ctx),
                                    places_of_key((const uint8_t *)key, len), key, len, f);
}

bool move_any_record(const char *key, size_t len, bool expiring) {
    if (!may_be(key, len)) return false;
    uint32_t place = places_of_key((const uint8_t *)key, len);
    found f;
    for (int db = 0; db < maps_dbs(); db++)
        if (find(db, place, key, len, &f) && (!expiring || map_expiry_ms(&f.pos) != EXPIRY_NEVER))
            return true;
    return false;
}

static void drop(RedisModuleCtx *ctx, found *f) {
    map_delete(f->in->m, &f->key, &f->pos, expiry_ticks(clock_now_ms()));
    map_home_drop_if_empty(ctx, f->in);
}

void move_drop_record(RedisModuleCtx *ctx, RedisModuleString *name) {
    found f;
    if (find_name(ctx, name, &f)) drop(ctx, &f);
}

bool move_out(RedisModuleCtx *ctx, RedisModuleString *name) {
    found f;
    size_t len;
    if (!find_name(ctx, name, &f)) return false;
    const uint8_t *value = map_value(f.in->m, &f.pos, &len);
    if (!value) return false;
    RedisModuleString *copy = RedisModule_CreateString(NULL, (const char *)value, len);
    /* As it may be told: moved in again, it becomes the same. */
    int64_t at_ms = map_expiry_told_ms(&f.pos);
    drop(ctx, &f);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    int before = quiet_begin(ctx, REDISMODULE_NOTIFY_NEW);
    RedisModule_StringSet(key, copy);
    quiet_end(ctx, before);
    /* What has expired has no time of its own any more. */
    if (at_ms != EXPIRY_NEVER) RedisModule_SetAbsExpire(key, at_ms > 0 ? at_ms : 1);
    RedisModule_CloseKey(key);
    RedisModule_FreeString(NULL, copy);
    ckv.stats.moved_out++;
    return true;
}

bool move_in(RedisModuleCtx *ctx, RedisModuleString *name) {
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    bool done = false;
    if (RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_STRING) {
        size_t key_len, len;
        const char *bytes = RedisModule_StringPtrLen(name, &key_len);
        const char *value = RedisModule_StringDMA(key, &len, REDISMODULE_READ);
        mstime_t at_ms = RedisModule_GetAbsExpire(key);
        bool kept = at_ms == REDISMODULE_NO_EXPIRE || at_ms - clock_now_ms() < EXPIRY_TTL_MAX_MS;
        keyed_map *to = kept ? map_home_make(ctx, RedisModule_GetSelectedDb(ctx),
                                             places_of_key((const uint8_t *)bytes, key_len))
                             : NULL;
        done =
            to && map_store(to->m, (const uint8_t *)bytes, key_len, (const uint8_t *)value, len,
                            at_ms == REDISMODULE_NO_EXPIRE ? EXPIRY_NEVER : at_ms, clock_now_ms());
        if (done) {
            RedisModule_DeleteKey(key);
            ckv.stats.moved_in++;
        }
    }
    RedisModule_CloseKey(key);
    return done;
}
