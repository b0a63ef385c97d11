/* walk.c: a walk over all strings or records. See walk.h. */
#include "background/walk.h"

#include "core/map/map_scan.h"
#include "keyspace/maps.h"
#include "keyspace/native.h"
#include "server/array.h"

static void note(walk *w, RedisModuleString *name) {
    w->names = array_grow(w->names, w->count, &w->room, sizeof *w->names);
    w->names[w->count++] = name;
}

void walk_end(walk *w) {
    while (w->first < w->count) RedisModule_FreeString(NULL, w->names[w->first++]);
    RedisModule_Free(w->names);
    if (w->cursor) RedisModule_ScanCursorDestroy(w->cursor);
    w->names = NULL;
    w->cursor = NULL;
    w->first = w->count = w->room = 0;
}

void walk_begin(walk *w, RedisModuleCtx *ctx, walk_over over, walk_wanted *wanted) {
    walk_end(w);
    *w = (walk){.over = over, .wanted = wanted};
    if (over == WALK_RECORDS) w->keys = maps_totals().totals.records;
    for (int db = 0; over == WALK_NATIVE_STRINGS && RedisModule_SelectDb(ctx, db) == REDISMODULE_OK;
         db++)
        w->keys += native_count(ctx);
}

/* ---- strings of the server's own ------------------------------------------------------------- */

/* The keyspace must not change while the server goes through it: names are kept for later. */
static void look_at_key(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleKey *key,
                        void *data) {
    walk *w = data;
    size_t len;
    (void)ctx;
    w->looked_at++;
    if (RedisModule_KeyType(key) != REDISMODULE_KEYTYPE_STRING) return;
    const char *text = RedisModule_StringPtrLen(name, &len);
    if (!w->wanted(text, len)) return;
    RedisModule_RetainString(NULL, name);
    note(w, name);
}

/* False: there is no further database. */
static bool scan_keys(walk *w, RedisModuleCtx *ctx) {
    if (RedisModule_SelectDb(ctx, w->db) != REDISMODULE_OK) return false;
    if (!w->cursor) w->cursor = RedisModule_ScanCursorCreate();
    if (native_any(ctx) && RedisModule_Scan(ctx, w->cursor, look_at_key, w)) return true;
    RedisModule_ScanCursorRestart(w->cursor);
    w->db++;
    return true;
}

/* ---- records --------------------------------------------------------------------------------- */

static bool look_at_record(void *data, const uint8_t *key, size_t len, const map_pos *pos) {
    walk *w = data;
    (void)pos;
    w->looked_at++;
    if (w->wanted((const char *)key, len))
        note(w, RedisModule_CreateString(NULL, (const char *)key, len));
    return true;
}

static void next_place(walk *w) {
    w->position = 0;
    if (++w->place < ckv.places) return;
    w->place = 0;
    w->db++;
}

/* The same. */
static bool scan_records(walk *w) {
    if (w->db >= maps_dbs()) return false;
    const keyed_map *s = maps_served_at(w->db, (uint32_t)w->place);
    if (s) w->position = map_scan(s->m, w->position, look_at_record, w);
    if (!s || w->position == MAP_SCAN_END) next_place(w);
    return true;
}

walk_answer walk_step(walk *w, RedisModuleCtx *ctx, RedisModuleString **name) {
    if (w->first == w->count) {
        w->first = w->count = 0;
        w->found_in = w->db;
        if (!(w->over == WALK_RECORDS ? scan_records(w) : scan_keys(w, ctx))) return WALK_END;
    }
    if (w->first == w->count) return WALK_NO_KEY;
    RedisModule_SelectDb(ctx, w->found_in);
    *name = w->names[w->first++];
    return WALK_KEY;
}

void walk_again(walk *w) {
    w->first--;
}
