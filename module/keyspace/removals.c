/* removals.c: telling of records that are gone. See removals.h. */
#include "keyspace/removals.h"

#include "keyspace/places.h"
#include "keyspace/replicate.h"
#include "server/quiet.h"
#include "server/settings.h"

void removals_note(void *all, const uint8_t *key, size_t key_len) {
    removals *r = all;
    bool cluster = places_layout() == PLACES_SLOTS;
    r->parts[r->count] = (removals_part){r->db, cluster ? places_of_key(key, key_len) : 0};
    r->keys[r->count++] = RedisModule_CreateString(NULL, (const char *)key, key_len);
}

bool removals_full(const removals *all) {
    return all->count + REMOVALS_STEP > REMOVALS_MAX;
}

/* Puts those that belong to one command with the last one to the end; returns where they begin. */
static size_t gather_last(removals *all) {
    size_t first = all->count - 1;
    removals_part last = all->parts[first];
    for (size_t i = first; i-- > 0;) {
        removals_part part = all->parts[i];
        if (part.db != last.db || part.slot != last.slot) continue;
        first--;
        RedisModuleString *key = all->keys[i];
        all->keys[i] = all->keys[first];
        all->parts[i] = all->parts[first];
        all->keys[first] = key;
        all->parts[first] = last;
    }
    return first;
}

/* ---- telling --------------------------------------------------------------------------------- */

typedef struct removed {
    RedisModuleString *key;
    const char *event;
    int db, type;
} removed;

static struct {
    removed *list;
    size_t count, room;
    bool on;
} held;

static void hold(const removed *r) {
    if (held.count == held.room) {
        held.room = held.room ? 2 * held.room : REMOVALS_STEP;
        held.list = RedisModule_Realloc(held.list, held.room * sizeof *held.list);
    }
    RedisModule_RetainString(NULL, r->key);
    held.list[held.count++] = *r;
}

static void tell(RedisModuleCtx *ctx, const removed *r) {
    quiet_signal_modified(ctx, r->key);
    RedisModule_NotifyKeyspaceEvent(ctx, r->type, r->event, r->key);
}

void removals_tell(RedisModuleCtx *ctx, RedisModuleString *key, int type, const char *event) {
    removed r = {key, event, RedisModule_GetSelectedDb(ctx), type};
    if (held.on)
        hold(&r);
    else
        tell(ctx, &r);
}

void removals_begin_hold(void) {
    held.on = true;
}

/* Who is told may call commands, before which more is held. */
void removals_end_hold(RedisModuleCtx *ctx) {
    removed *list = held.list;
    size_t count = held.count;
    held.on = false;
    held.list = NULL;
    held.count = held.room = 0;
    for (size_t i = 0; i < count; i++) {
        RedisModule_SelectDb(ctx, list[i].db);
        tell(ctx, &list[i]);
        RedisModule_FreeString(NULL, list[i].key);
    }
    RedisModule_Free(list);
}

/* Who hears of an event may write: replicas have been told by then. */
void removals_announce(RedisModuleCtx *ctx, removals *all, removals_cause cause) {
    bool expired = cause == REMOVALS_EXPIRED;
    bool lazy = expired ? settings_lazy_expire() : settings_lazy_eviction();
    int type = expired ? REDISMODULE_NOTIFY_EXPIRED : REDISMODULE_NOTIFY_EVICTED;
    while (all->count > 0) {
        size_t first = gather_last(all), end = all->count;
        RedisModule_SelectDb(ctx, all->parts[first].db);
        replicate_removal(ctx, all->keys + first, end - first, lazy);
        all->count = first;
        for (size_t i = first; i < end; i++) {
            removals_tell(ctx, all->keys[i], type, expired ? "expired" : "evicted");
            RedisModule_FreeString(NULL, all->keys[i]);
        }
    }
}
