/* own_records.c: records of a replica's own clients. See own_records.h. */
#include "keyspace/own_records.h"

#include "keyspace/numbered_names.h"
#include "keyspace/spent.h"
#include "server/role.h"

#define AT_ONCE 64

static RedisModuleDict *names; /* by database */
static RedisModuleString *next;

/* The setting may have changed just now. */
static bool is_writable_replica(RedisModuleCtx *ctx) {
    int flags = RedisModule_GetContextFlags(ctx);
    return (flags & REDISMODULE_CTX_FLAGS_SLAVE) && !(flags & REDISMODULE_CTX_FLAGS_READONLY);
}

/* Whether the server tells times by another one's clock (map_place.c). */
static void note_role(bool follows) {
    ckv.shared.follows = follows;
}

void own_records_start(RedisModuleCtx *ctx) {
    note_role(RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_SLAVE);
    role_listen(note_role);
}

void own_records_note(RedisModuleCtx *ctx, int db, const RedisModuleString *name) {
    if (!ckv.shared.follows || !is_writable_replica(ctx) || role_repeats(ctx)) return;
    numbered_add(&names, (uint64_t)db, name);
}

bool own_records_have(int db, const RedisModuleString *key) {
    return numbered_has(names, (uint64_t)db, key);
}

void own_records_forget(void) {
    spent_take(&names, NULL, NULL);
    if (next) RedisModule_FreeString(NULL, next);
    next = NULL;
}

void own_records_step(RedisModuleCtx *ctx, own_records_expire *expire) {
    int flags = RedisModule_GetContextFlags(ctx);
    note_role(flags & REDISMODULE_CTX_FLAGS_SLAVE);
    if (!ckv.shared.follows) own_records_forget();
    if (!names || role_loads(ctx)) return;
    RedisModuleString *list[AT_ONCE];
    size_t count = numbered_some(names, &next, list, AT_ONCE);
    for (size_t i = 0; i < count; i++) {
        RedisModuleString *key;
        uint64_t db = numbered_split(list[i], &key);
        RedisModule_SelectDb(ctx, (int)db);
        bool kept = expire(ctx, key); /* who is told may have all forgotten */
        if (!kept) numbered_drop(&names, db, key);
        RedisModule_FreeString(NULL, key);
        RedisModule_FreeString(NULL, list[i]);
    }
}
