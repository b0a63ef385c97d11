/* watched.c: telling WATCH of records that go all at once. See watched.h. */
#include "keyspace/watched.h"

#include "keyspace/places.h"
#include "server/array.h"
#include "server/clock.h"
#include "server/filter.h"
#include "server/quiet.h"
#include "server/within.h"

/* CONFIG RESETSTAT forgets what was counted before, and counts itself. */
static bool somebody_watches(bool or_tracks) {
    int error;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ckv.ctx, "clients");
    uint64_t tracking = RedisModule_ServerInfoGetFieldUnsigned(info, "tracking_clients", &error);
    uint64_t watching = RedisModule_ServerInfoGetFieldUnsigned(info, "watching_clients", &error);
    RedisModule_FreeServerInfo(ckv.ctx, info);
    if (or_tracks && tracking > 0) return true;
    if (error == REDISMODULE_OK) return watching > 0;
    info = RedisModule_GetServerInfo(ckv.ctx, "commandstats");
    bool ever = RedisModule_ServerInfoGetFieldC(info, "cmdstat_watch") ||
                RedisModule_ServerInfoGetFieldC(info, "cmdstat_config|resetstat");
    RedisModule_FreeServerInfo(ckv.ctx, info);
    return ever;
}

#define STRETCH_US 1000
/* Of slots that come: less than it takes them to leave, and to come again. */
#define BELIEVED_US 50000

/* Whether somebody watches or tracks, asked once for all maps that the server takes away at a
 * stretch (slots that leave, by thousands): in between nobody begins to, unless the filter sees
 * commands other than the one that takes the next one away (a replica is told of each by one), or a
 * transaction runs. Where there is no filter each is asked about. */
static bool somebody_may_watch(void) {
    static uint64_t seen, at_us;
    static bool answer;
    uint64_t now = within_exec() ? 0 : filter_seen();
    if (now == 0 || now - seen > 1 || clock_monotonic_us() - at_us > STRETCH_US)
        answer = somebody_watches(true);
    seen = now;
    at_us = clock_monotonic_us();
    return answer;
}

typedef struct names {
    RedisModuleString **list;
    size_t count, room;
    int64_t now_ms;
} names;

/* What has expired was not there for whoever watches it. */
static bool note(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    names *n = context;
    if (map_expiry_ms(pos) < n->now_ms) return true;
    n->list = array_grow(n->list, n->count, &n->room, sizeof *n->list);
    n->list[n->count++] = RedisModule_CreateString(NULL, (const char *)key, key_len);
    return true;
}

/* All names first: Redis 8.2 looks for each key when it is told of it, other modules hear of a miss
 * then, and may write. */
static void tell_map(const keyed_map *s, int db) {
    names n = {.now_ms = clock_now_ms()};
    map_each_record(s->m, note, &n);
    for (size_t i = 0; i < n.count; i++) {
        RedisModule_SelectDb(ckv.ctx, db);
        quiet_signal_modified(ckv.ctx, n.list[i]);
        RedisModule_FreeString(NULL, n.list[i]);
    }
    RedisModule_Free(n.list);
}

static void tell_db(int from, int db) {
    for (uint32_t place = 0; place < ckv.places; place++) {
        const keyed_map *s = maps_served_at(from, place);
        if (s) tell_map(s, db);
    }
}

static bool has_records(const keyed_map *s) {
    return s->place != PLACES_NONE && s->m->totals.records > 0;
}

void watched_leave(keyed_map *s) {
    if (has_records(s) && somebody_may_watch()) tell_map(s, s->db);
}

void watched_leave_slots(const bool *slots) {
    if (!maps_any() || !somebody_watches(false)) return;
    for (int db = 0; db < maps_dbs(); db++) {
        for (uint32_t place = 0; place < ckv.places; place++) {
            const keyed_map *s = slots[place] ? maps_at(db, place) : NULL;
            if (s && has_records(s)) tell_map(s, db);
        }
    }
}

void watched_come(keyed_map *s) {
    static uint64_t asked_us;
    static bool answer;
    if (!has_records(s)) return;
    if (clock_monotonic_us() - asked_us > BELIEVED_US) {
        answer = somebody_watches(true);
        asked_us = clock_monotonic_us();
    }
    if (answer) tell_map(s, s->db);
}

void watched_db(int db) {
    int last = db < 0 ? maps_dbs() - 1 : db;
    if (!maps_any() || !somebody_watches(false)) return;
    for (int i = db < 0 ? 0 : db; i <= last; i++) tell_db(i, i);
}

void watched_db_from(int db, int other) {
    if (!maps_any() || !somebody_watches(false)) return;
    tell_db(db, db);
    tell_db(db, other);
}
