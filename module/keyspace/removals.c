/* removals.c: telling of records that are gone. See removals.h. */
#include "keyspace/removals.h"

#include "keyspace/replicate.h"
#include "server/quiet.h"
#include "server/settings.h"

void removals_note(void *all, const uint8_t *key, size_t key_len) {
    removals *r = all;
    r->dbs[r->count] = r->db;
    r->keys[r->count++] = RedisModule_CreateString(NULL, (const char *)key, key_len);
}

bool removals_full(const removals *all) {
    return all->count + REMOVALS_STEP > REMOVALS_MAX;
}

/* Puts those of the last one's database to the end; returns where they begin. */
static size_t gather_last(removals *all) {
    size_t first = all->count - 1;
    int db = all->dbs[first];
    for (size_t i = first; i-- > 0;) {
        if (all->dbs[i] != db) continue;
        first--;
        RedisModuleString *key = all->keys[i];
        all->keys[i] = all->keys[first];
        all->dbs[i] = all->dbs[first];
        all->keys[first] = key;
        all->dbs[first] = db;
    }
    return first;
}

/* Who hears of an event may write: replicas have been told by then. */
void removals_announce(RedisModuleCtx *ctx, removals *all, removals_cause cause) {
    bool expired = cause == REMOVALS_EXPIRED;
    bool lazy = expired ? settings_lazy_expire() : settings_lazy_eviction();
    int type = expired ? REDISMODULE_NOTIFY_EXPIRED : REDISMODULE_NOTIFY_EVICTED;
    while (all->count > 0) {
        size_t first = gather_last(all), end = all->count;
        RedisModule_SelectDb(ctx, all->dbs[first]);
        replicate_removal(ctx, all->keys + first, end - first, lazy);
        all->count = first;
        for (size_t i = first; i < end; i++) {
            quiet_signal_modified(ctx, all->keys[i]);
            RedisModule_NotifyKeyspaceEvent(ctx, type, expired ? "expired" : "evicted",
                                            all->keys[i]);
            RedisModule_FreeString(NULL, all->keys[i]);
        }
    }
}
