/* removals.c: telling of records that are gone. See removals.h. */
#include "keyspace/removals.h"

#include "keyspace/places.h"
#include "keyspace/replicate.h"
#include "server/array.h"
#include "server/quiet.h"
#include "server/settings.h"

void removals_note(void *all, const uint8_t *key, size_t key_len) {
    removals *r = all;
    bool cluster = places_are_slots();
    r->parts[r->count] = (removals_part){r->db, cluster ? places_of_key(key, key_len) : 0};
    r->keys[r->count++] = RedisModule_CreateString(NULL, (const char *)key, key_len);
}

bool removals_full(const removals *all) {
    return all->count + REMOVALS_STEP > REMOVALS_MAX;
}

/* Of the first `count`, puts those that belong to one command with the last one to the end; returns
 * where they begin. */
static size_t gather_last(removals *all, size_t count) {
    size_t first = count - 1;
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
    held.list = array_grow(held.list, held.count, &held.room, sizeof *held.list);
    RedisModule_RetainString(NULL, r->key);
    held.list[held.count++] = *r;
}

/* No client's doing: one that tracks all but its own changes is told as well. */
static void tell(RedisModuleCtx *ctx, const removed *r) {
    RedisModule_SelectDb(ctx, r->db);
    RedisModule_SelectDb(ckv.ctx, r->db);
    quiet_signal_modified(ckv.ctx, r->key);
    RedisModule_NotifyKeyspaceEvent(ctx, r->type, r->event, r->key);
}

static void hold_or_tell(RedisModuleCtx *ctx, const removed *r) {
    if (held.on)
        hold(r);
    else
        tell(ctx, r);
}

void removals_tell(RedisModuleCtx *ctx, RedisModuleString *key, int type, const char *event) {
    removed r = {key, event, RedisModule_GetSelectedDb(ctx), type};
    hold_or_tell(ctx, &r);
}

void removals_defer(void) {
    held.on = true;
}

/* Who is told may call commands, before which more is held. */
void removals_tell_deferred(RedisModuleCtx *ctx) {
    removed *list = held.list;
    size_t count = held.count;
    held.on = false;
    held.list = NULL;
    held.count = held.room = 0;
    for (size_t i = 0; i < count; i++) {
        tell(ctx, &list[i]);
        RedisModule_FreeString(NULL, list[i].key);
    }
    RedisModule_Free(list);
}

static void replicate_all(RedisModuleCtx *ctx, removals *all, bool lazy) {
    for (size_t first, end = all->count; end > 0; end = first) {
        first = gather_last(all, end);
        RedisModule_SelectDb(ctx, all->parts[first].db);
        replicate_removal(ctx, all->keys + first, end - first, lazy);
    }
}

/* Who hears of an event may write, and call what gathers here itself: replicas have been told of
 * all by then, and nothing is left to tell of. */
void removals_announce(RedisModuleCtx *ctx, removals *all, removals_cause cause) {
    size_t count = all->count;
    if (count == 0) return;
    bool expired = cause == REMOVALS_EXPIRED;
    const char *event = expired ? "expired" : "evicted";
    int type = expired ? REDISMODULE_NOTIFY_EXPIRED : REDISMODULE_NOTIFY_EVICTED;
    replicate_all(ctx, all, expired ? settings_lazy_expire() : settings_lazy_eviction());
    removed *gone = RedisModule_Alloc(count * sizeof *gone);
    for (size_t i = 0; i < count; i++)
        gone[i] = (removed){all->keys[i], event, all->parts[i].db, type};
    all->count = 0;
    for (size_t i = 0; i < count; i++) {
        hold_or_tell(ctx, &gone[i]);
        RedisModule_FreeString(NULL, gone[i].key);
    }
    RedisModule_Free(gone);
}
