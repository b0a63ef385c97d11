/* beside.c: files beside the data that is served. See beside.h. */
#include "persist/beside.h"

#include "keyspace/maps.h"
#include "keyspace/migration.h"
#include "keyspace/own_records.h"
#include "keyspace/places.h"
#include "keyspace/relocate.h"
#include "keyspace/watched.h"
#include "server/array.h"

#include <string.h>

/* Names only: in Redis 7.0 all databases that are loaded into say that they are the first. */
typedef struct noted {
    RedisModuleString *name;
    bool misplaced;
} noted;

static struct {
    noted *maps;
    size_t count, room;
} list;

static bool loading;

bool beside_loading(void) {
    return loading;
}

void beside_note(const RedisModuleString *name, bool misplaced) {
    list.maps = array_grow(list.maps, list.count, &list.room, sizeof *list.maps);
    size_t len;
    const char *text = RedisModule_StringPtrLen(name, &len);
    list.maps[list.count++] = (noted){RedisModule_CreateString(NULL, text, len), misplaced};
}

static void forget_all(void) {
    for (size_t i = 0; i < list.count; i++) RedisModule_FreeString(NULL, list.maps[i].name);
    RedisModule_Free(list.maps);
    memset(&list, 0, sizeof list);
}

static void list_map(int db, const noted *map) {
    RedisModuleKey *key =
        RedisModule_OpenKey(ckv.ctx, map->name, REDISMODULE_READ | REDISMODULE_WRITE);
    if (RedisModule_ModuleTypeGetType(key) == ckv.type) {
        keyed_map *s = RedisModule_ModuleTypeGetValue(key);
        if (map->misplaced && s->home == PLACES_NONE) relocate_later(db, map->name);
        if (s->state != MAP_LISTED) maps_list(s, db, map->name);
    }
    RedisModule_CloseKey(key);
}

/* The server has swapped its databases already. */
static void take_over(void) {
    watched_db(-1);
    maps_unlist_db(-1);
    migration_flushed(-1);
    own_records_forget();
    /* The size of a database leaves out slots on their way here, and takes long to ask then. */
    bool slots = places_are_slots();
    for (int db = 0; RedisModule_SelectDb(ckv.ctx, db) == REDISMODULE_OK; db++) {
        bool any = slots || RedisModule_DbSize(ckv.ctx) > 0;
        for (size_t i = 0; any && i < list.count; i++) list_map(db, &list.maps[i]);
    }
    watched_db(-1);
    if (!relocate_all())
        ckv_log("warning", "records of the primary are missing here: it has another ckv.maps");
}

static void on_async_load(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)data;
    loading = sub == REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED;
    if (sub == REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED) take_over();
    forget_all();
}

int beside_start(RedisModuleCtx *ctx) {
    return RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ReplAsyncLoad, on_async_load);
}
