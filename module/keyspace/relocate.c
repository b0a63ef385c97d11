/* relocate.c: files of other layouts. See relocate.h. */
#include "keyspace/relocate.h"

#include "keyspace/map_home.h"
#include "keyspace/maps.h"
#include "keyspace/places.h"
#include "server/array.h"
#include "server/clock.h"

#include <string.h>

/* A map in the wrong place; first known by its name, then taken out of the keyspace. */
typedef struct misplaced {
    int db;
    RedisModuleString *name;
    keyed_map *stored;
    bool gone; /* the server has dropped it: it had expired */
} misplaced;

static struct {
    misplaced *maps;
    size_t count, room;
} list;

void relocate_later(int db, const RedisModuleString *name) {
    list.maps = array_grow(list.maps, list.count, &list.room, sizeof *list.maps);
    size_t len;
    const char *text = RedisModule_StringPtrLen(name, &len);
    list.maps[list.count++] =
        (misplaced){.db = db, .name = RedisModule_CreateString(NULL, text, len)};
}

void relocate_forget(void) {
    for (size_t i = 0; i < list.count; i++) {
        RedisModule_FreeString(NULL, list.maps[i].name);
        if (list.maps[i].stored) maps_free(list.maps[i].stored);
    }
    RedisModule_Free(list.maps);
    memset(&list, 0, sizeof list);
}

/* The name may be that of a map of ours as well, so all are taken out before any is emptied. */
static void take_out(misplaced *m) {
    RedisModule_SelectDb(ckv.ctx, m->db);
    RedisModuleKey *key =
        RedisModule_OpenKey(ckv.ctx, m->name, REDISMODULE_READ | REDISMODULE_WRITE);
    m->gone = RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_EMPTY;
    map *empty = m->gone ? NULL : map_new(&ckv.shared, ckv.secret);
    keyed_map *instead = empty ? maps_wrap(empty, PLACES_NONE) : NULL;
    void *old;
    if (instead &&
        RedisModule_ModuleTypeReplaceValue(key, ckv.type, instead, &old) == REDISMODULE_OK) {
        m->stored = old;
        maps_unlist(m->stored);
        RedisModule_DeleteKey(key);
    } else if (instead) {
        maps_free(instead);
    }
    RedisModule_CloseKey(key);
}

typedef struct pouring {
    map *from;
    int db;
    uint64_t now_ticks;
    uint8_t *bytes; /* of the record: the codecs' own buffers are used again */
    size_t cap;
} pouring;

static bool put(const pouring *p, size_t key_len, size_t value_len, uint16_t code) {
    keyed_map *to = map_home_make(ckv.ctx, p->db, places_of_key(p->bytes, key_len));
    return to && map_store_code(to->m, p->bytes, key_len, p->bytes + key_len, value_len, code,
                                p->now_ticks);
}

static bool pour(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    pouring *p = context;
    size_t value_len;
    const uint8_t *value = map_value(p->from, pos, &value_len);
    if (!value) return true; /* damaged beyond reading: there is nothing to move */
    if (key_len + value_len > p->cap) {
        p->cap = 2 * (key_len + value_len);
        p->bytes = RedisModule_Realloc(p->bytes, p->cap);
    }
    memcpy(p->bytes, key, key_len);
    memcpy(p->bytes + key_len, value, value_len);
    return put(p, key_len, value_len, map_expiry_code(pos, p->now_ticks));
}

/* Moves the records of one map, which is freed. */
static bool empty_out(misplaced *m, pouring *p) {
    if (!m->stored) return m->gone;
    p->from = m->stored->m;
    p->db = m->db;
    RedisModule_SelectDb(ckv.ctx, m->db);
    bool done = map_each_record(p->from, pour, p);
    maps_free(m->stored);
    m->stored = NULL;
    return done;
}

bool relocate_all(void) {
    if (list.count == 0) return true;
    ckv_log("notice", "the file has %zu maps of another layout: their records are put in place",
            list.count);
    for (size_t i = 0; i < list.count; i++) take_out(&list.maps[i]);
    pouring p = {.now_ticks = expiry_ticks(clock_now_ms())};
    bool done = true;
    /* Also behind one that can't be: what can be saved is. */
    for (size_t i = 0; i < list.count; i++) {
        bool this = empty_out(&list.maps[i], &p);
        done = done && this;
    }
    RedisModule_Free(p.bytes);
    relocate_forget();
    if (!done)
        ckv_log("warning",
                "out of memory, or one of the names " CKV_MAP_PREFIX "* holds something else");
    return done;
}
