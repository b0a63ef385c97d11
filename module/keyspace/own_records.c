/* own_records.c: records of a replica's own clients. See own_records.h. */
#include "keyspace/own_records.h"

#include "keyspace/spent.h"
#include "server/role.h"

#include <string.h>

#define AT_ONCE 64

/* Names of four bytes of the database and the key behind it. */
static RedisModuleDict *names;
static RedisModuleString *next;

/* The setting may have changed just now. */
static bool is_writable_replica(RedisModuleCtx *ctx) {
    int flags = RedisModule_GetContextFlags(ctx);
    return (flags & REDISMODULE_CTX_FLAGS_SLAVE) && !(flags & REDISMODULE_CTX_FLAGS_READONLY);
}

static void on_role(bool follows) {
    ckv.shared.follows = follows;
}

bool own_records_start(RedisModuleCtx *ctx) {
    ckv.shared.follows = RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_SLAVE;
    return role_listen(ctx, on_role);
}

static RedisModuleString *name_of(int db, const void *key, size_t len) {
    RedisModuleString *name = RedisModule_CreateString(NULL, (const char *)&db, sizeof db);
    RedisModule_StringAppendBuffer(NULL, name, key, len);
    return name;
}

void own_records_note(RedisModuleCtx *ctx, int db, const uint8_t *key, size_t len) {
    if (!ckv.shared.follows || !is_writable_replica(ctx) || role_repeats(ctx)) return;
    if (!names) names = RedisModule_CreateDict(NULL);
    RedisModuleString *name = name_of(db, key, len);
    RedisModule_DictReplace(names, name, NULL);
    RedisModule_FreeString(NULL, name);
}

bool own_records_have(int db, const RedisModuleString *key) {
    size_t len;
    int missing = 1;
    if (!names) return false;
    const char *text = RedisModule_StringPtrLen(key, &len);
    RedisModuleString *name = name_of(db, text, len);
    RedisModule_DictGet(names, name, &missing);
    RedisModule_FreeString(NULL, name);
    return !missing;
}

void own_records_forget(void) {
    spent_take(&names, NULL, NULL);
    if (next) RedisModule_FreeString(NULL, next);
    next = NULL;
}

/* Collects the names that follow `next`, from the first after the last. */
static size_t take_names(RedisModuleString *list[AT_ONCE]) {
    size_t count = 0, len;
    const char *from = next ? RedisModule_StringPtrLen(next, &len) : NULL;
    RedisModuleDictIter *it = from ? RedisModule_DictIteratorStartC(names, ">", (void *)from, len)
                                   : RedisModule_DictIteratorStartC(names, "^", NULL, 0);
    const char *name;
    while (count < AT_ONCE && (name = RedisModule_DictNextC(it, &len, NULL)))
        list[count++] = RedisModule_CreateString(NULL, name, len);
    RedisModule_DictIteratorStop(it);
    if (next) RedisModule_FreeString(NULL, next);
    next = count == AT_ONCE ? RedisModule_CreateStringFromString(NULL, list[count - 1]) : NULL;
    return count;
}

static bool expire_one(RedisModuleCtx *ctx, RedisModuleString *name, own_records_expire *expire) {
    int db;
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(name, &len);
    memcpy(&db, bytes, sizeof db);
    RedisModuleString *key = RedisModule_CreateString(NULL, bytes + sizeof db, len - sizeof db);
    RedisModule_SelectDb(ctx, db);
    bool kept = expire(ctx, key);
    RedisModule_FreeString(NULL, key);
    return kept;
}

void own_records_step(RedisModuleCtx *ctx, own_records_expire *expire) {
    int flags = RedisModule_GetContextFlags(ctx);
    ckv.shared.follows = flags & REDISMODULE_CTX_FLAGS_SLAVE;
    if (!ckv.shared.follows) own_records_forget();
    if (!names || role_loads(ctx)) return;
    RedisModuleString *list[AT_ONCE];
    size_t count = take_names(list);
    for (size_t i = 0; i < count; i++) {
        bool kept = expire_one(ctx, list[i], expire); /* who is told may have all forgotten */
        if (!kept && names) RedisModule_DictDel(names, list[i], NULL);
        RedisModule_FreeString(NULL, list[i]);
    }
}
