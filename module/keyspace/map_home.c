/* map_home.c: the Redis key that a map is the value of. See map_home.h. */
#include "keyspace/map_home.h"

#include "keyspace/native_memory.h"
#include "keyspace/places.h"
#include "server/quiet.h"

/* Opened for writing even to read: a miss in reading would announce the map's own key. */
static RedisModuleKey *open_home(RedisModuleCtx *ctx, uint32_t place) {
    RedisModuleString *name = places_name(place);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    RedisModule_FreeString(ctx, name);
    return key;
}

map_home_holds map_home_look(RedisModuleCtx *ctx, int db, uint32_t place, keyed_map **s) {
    RedisModuleKey *key = open_home(ctx, place);
    int type = RedisModule_KeyType(key);
    *s = NULL;
    if (type == REDISMODULE_KEYTYPE_MODULE && RedisModule_ModuleTypeGetType(key) == ckv.type) {
        keyed_map *found = RedisModule_ModuleTypeGetValue(key);
        if (found->state != MAP_LISTED)
            maps_list(found, db, RedisModule_GetKeyNameFromModuleKey(key));
        if (found->place == place) *s = found;
    }
    RedisModule_CloseKey(key);
    return *s ? HOME_MAP : type == REDISMODULE_KEYTYPE_EMPTY ? HOME_EMPTY : HOME_OTHER;
}

keyed_map *map_home_make(RedisModuleCtx *ctx, int db, uint32_t place) {
    keyed_map *s = maps_at(db, place);
    if (s) return s;
    RedisModuleString *name = places_name(place);
    RedisModuleKey *key = open_home(ctx, place);
    map *m = NULL;
    if (RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_EMPTY && !native_is_spent(ctx, name))
        m = map_new(&ckv.shared, ckv.secret);
    RedisModule_FreeString(NULL, name);
    if (m) {
        int before = quiet_begin(ctx);
        RedisModule_ModuleTypeSetValue(key, ckv.type, maps_wrap(m, place));
        quiet_end(ctx, before);
    }
    RedisModule_CloseKey(key);
    /* Another module hears of the new key, and may have put something else there. */
    if (m) map_home_look(ctx, db, place, &s);
    return s;
}

void map_home_drop_if_empty(RedisModuleCtx *ctx, const keyed_map *s) {
    if (s->m->totals.records > 0) return;
    RedisModuleKey *key = open_home(ctx, s->place);
    RedisModule_DeleteKey(key);
    RedisModule_CloseKey(key);
}
