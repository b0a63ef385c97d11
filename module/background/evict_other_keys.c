/* evict_other_keys.c: evicting keys that are not ckv's. See evict_other_keys.h. */
#include "background/evict_other_keys.h"

#include "keyspace/native.h"
#include "keyspace/native_memory.h"
#include "keyspace/removals.h"
#include "server/databases.h"
#include "server/settings.h"

#define CANDIDATES     5 /* the server's own maxmemory-samples */
#define AVERAGE_WEIGHT 0.05
#define TRIES          100 /* before it is said that there is none: maps, or keys without an expiry */

static int next_db;
static double average; /* bytes of a key, of those drawn lately */

static uint64_t count_in(RedisModuleCtx *ctx, int db) {
    RedisModule_SelectDb(ctx, db);
    return native_count(ctx);
}

/* Selects the next database that holds any; false: none does. */
static bool select_db(RedisModuleCtx *ctx) {
    int dbs = databases_count();
    for (int i = 0; i < dbs; i++) {
        next_db = (next_db + 1) % dbs;
        if (count_in(ctx, next_db) > 0) return true;
    }
    return false;
}

/* How soon the key is to go, the sooner the higher; false: it must not. */
static bool rank(RedisModuleKey *key, const map_eviction *how, double *result) {
    mstime_t ttl = RedisModule_GetExpire(key), idle;
    long long frequency;
    if (RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_MODULE &&
        RedisModule_ModuleTypeGetType(key) == ckv.type)
        return false;
    if (how->expiring_only && ttl == REDISMODULE_NO_EXPIRE) return false;
    *result = 0;
    if (how->order == MAP_EVICT_FIRST_TO_EXPIRE)
        *result = -(double)ttl;
    else if (how->order == MAP_EVICT_LEAST_USED && RedisModule_GetLFU(key, &frequency) == 0 &&
             frequency >= 0)
        *result = -(double)frequency;
    else if (how->order == MAP_EVICT_LEAST_USED && RedisModule_GetLRU(key, &idle) == 0)
        *result = (double)idle;
    return true;
}

/* Draws keys of the selected database, and returns the one that is to go first. NULL: none may. */
static RedisModuleString *draw(RedisModuleCtx *ctx, const map_eviction *how) {
    RedisModuleString *best = NULL;
    double best_rank = 0, new_rank;
    for (int tries = 0, candidates = 0; tries < TRIES && candidates < CANDIDATES; tries++) {
        RedisModuleString *name = RedisModule_RandomKey(ctx);
        if (!name) break;
        RedisModuleKey *key =
            RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_OPEN_KEY_NOTOUCH);
        bool may_go = key && rank(key, how, &new_rank);
        RedisModule_CloseKey(key);
        candidates += may_go;
        if (may_go && (!best || new_rank > best_rank)) {
            RedisModuleString *worse = best;
            best = name;
            best_rank = new_rank;
            name = worse;
        }
        if (name) RedisModule_FreeString(ctx, name);
    }
    return best;
}

static size_t memory_usage(RedisModuleCtx *ctx, RedisModuleString *name) {
    size_t bytes = native_memory_usage(ctx, name);
    if (bytes == 0)
        return (size_t)average; /* the server would not tell, as while a cluster is down */
    average += AVERAGE_WEIGHT * ((double)bytes - average);
    return bytes;
}

double others_bytes(RedisModuleCtx *ctx, const map_eviction *how, bool ask) {
    uint64_t count = 0;
    int dbs = databases_count();
    for (int db = 0; db < dbs; db++) count += count_in(ctx, db);
    if (count == 0 || !select_db(ctx)) return 0;
    RedisModuleString *name = draw(ctx, how);
    if (!name) return 0;
    if (ask) memory_usage(ctx, name);
    RedisModule_FreeString(ctx, name);
    return (double)count * average;
}

size_t others_evict(RedisModuleCtx *ctx, const map_eviction *how, bool ask) {
    if (!select_db(ctx)) return 0;
    RedisModuleString *name = draw(ctx, how);
    if (!name) return 0;
    size_t bytes = ask ? memory_usage(ctx, name) : (size_t)average;
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_WRITE);
    RedisModule_UnlinkKey(key);
    RedisModule_CloseKey(key);
    RedisModule_Replicate(ctx, settings_lazy_eviction() ? "UNLINK" : "DEL", "s", name);
    removals_tell(ctx, name, REDISMODULE_NOTIFY_EVICTED, "evicted");
    RedisModule_FreeString(ctx, name);
    ckv.stats.evicted_keys++;
    return bytes;
}
