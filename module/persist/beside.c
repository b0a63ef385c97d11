/* beside.c: files beside the data that is served. See beside.h. */
#include "persist/beside.h"

#include "keyspace/maps.h"
#include "keyspace/relocate.h"
#include "keyspace/watched.h"

#include <string.h>

typedef struct noted {
    int db;
    RedisModuleString *name;
} noted;

static struct {
    noted *maps;
    size_t count, room;
} list;

static bool loading;

bool beside_loading(void) {
    return loading;
}

void beside_note(int db, const RedisModuleString *name) {
    if (list.count == list.room) {
        list.room = list.room ? 2 * list.room : 64;
        list.maps = RedisModule_Realloc(list.maps, list.room * sizeof *list.maps);
    }
    size_t len;
    const char *text = RedisModule_StringPtrLen(name, &len);
    list.maps[list.count++] = (noted){db, RedisModule_CreateString(NULL, text, len)};
}

static void forget_all(void) {
    for (size_t i = 0; i < list.count; i++) RedisModule_FreeString(NULL, list.maps[i].name);
    RedisModule_Free(list.maps);
    memset(&list, 0, sizeof list);
}

static void list_map(const noted *n) {
    RedisModule_SelectDb(ckv.ctx, n->db);
    RedisModuleKey *key =
        RedisModule_OpenKey(ckv.ctx, n->name, REDISMODULE_READ | REDISMODULE_WRITE);
    if (RedisModule_ModuleTypeGetType(key) == ckv.type)
        maps_list(RedisModule_ModuleTypeGetValue(key), n->db, n->name);
    RedisModule_CloseKey(key);
}

/* The server has swapped its databases already. */
static void take_over(void) {
    watched_db(-1);
    maps_unlist_db(-1);
    for (size_t i = 0; i < list.count; i++) list_map(&list.maps[i]);
    watched_db(-1);
    if (!relocate_all())
        ckv_log("warning", "records of the primary are missing here: it has another ckv.maps");
}

static void on_async_load(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)data;
    if (sub == REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED) maps_hide_none();
    loading = sub == REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED;
    if (sub == REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED) take_over();
    forget_all();
}

int beside_start(RedisModuleCtx *ctx) {
    return RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ReplAsyncLoad, on_async_load);
}
