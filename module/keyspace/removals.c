/* removals.c: telling of records that are gone. See removals.h. */
#include "keyspace/removals.h"

#include "keyspace/replicate.h"
#include "server/quiet.h"

void removals_note(void *all, const uint8_t *key, size_t key_len) {
    removals *r = all;
    r->keys[r->count++] = RedisModule_CreateString(NULL, (const char *)key, key_len);
}

void removals_announce(RedisModuleCtx *ctx, removals *all, int type, const char *event) {
    if (all->count == 0) return;
    replicate_gone(ctx, all->keys, all->count);
    for (size_t i = 0; i < all->count; i++) {
        quiet_signal_modified(ctx, all->keys[i]);
        RedisModule_NotifyKeyspaceEvent(ctx, type, event, all->keys[i]);
        RedisModule_FreeString(NULL, all->keys[i]);
    }
    all->count = 0;
}
