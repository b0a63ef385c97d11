/* removals.c: telling of records that are gone. See removals.h. */
#include "keyspace/removals.h"

#include "keyspace/replicate.h"
#include "server/quiet.h"

void removals_note(void *all, const uint8_t *key, size_t key_len) {
    removals *r = all;
    r->keys[r->count++] = RedisModule_CreateString(NULL, (const char *)key, key_len);
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
        held.room = held.room ? 2 * held.room : REMOVALS_MAX;
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

void removals_end_hold(RedisModuleCtx *ctx) {
    held.on = false;
    for (size_t i = 0; i < held.count; i++) {
        RedisModule_SelectDb(ctx, held.list[i].db);
        tell(ctx, &held.list[i]);
        RedisModule_FreeString(NULL, held.list[i].key);
    }
    RedisModule_Free(held.list);
    held.list = NULL;
    held.count = held.room = 0;
}

void removals_announce(RedisModuleCtx *ctx, removals *all, int type, const char *event) {
    if (all->count == 0) return;
    replicate_gone(ctx, all->keys, all->count);
    for (size_t i = 0; i < all->count; i++) {
        removals_tell(ctx, all->keys[i], type, event);
        RedisModule_FreeString(NULL, all->keys[i]);
    }
    all->count = 0;
}
