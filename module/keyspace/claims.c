/* claims.c: names, and which clients need them. See claims.h. */
#include "keyspace/claims.h"

#include "keyspace/names.h"
#include "keyspace/spent.h"

#include <string.h>

static void *value_of(RedisModuleDict *d, const void *key, size_t len) {
    return d ? RedisModule_DictGetC(d, (void *)key, len, NULL) : NULL;
}

static void hold(claims *c, const char *name, size_t len) {
    if (!c->held) c->held = RedisModule_CreateDict(NULL);
    uintptr_t times = (uintptr_t)value_of(c->held, name, len) + 1;
    RedisModule_DictReplaceC(c->held, (void *)name, len, (void *)times);
}

static void hold_no_more(void *context, const char *name, size_t len) {
    claims *c = context;
    uintptr_t times = (uintptr_t)value_of(c->held, name, len) - 1;
    if (times > 0)
        RedisModule_DictReplaceC(c->held, (void *)name, len, (void *)times);
    else
        RedisModule_DictDelC(c->held, (void *)name, len, NULL);
    names_free_if_empty(&c->held);
}

RedisModuleDict *claims_of(const claims *c, uint64_t client) {
    return value_of(c->by, &client, sizeof client);
}

static void give(claims *c, uint64_t client, RedisModuleDict *names) {
    if (!c->by) c->by = RedisModule_CreateDict(NULL);
    RedisModule_DictSetC(c->by, &client, sizeof client, names);
}

void claims_add(claims *c, uint64_t client, const char *name, size_t len) {
    spent_free_some();
    RedisModuleDict *names = claims_of(c, client);
    if (!names) give(c, client, names = RedisModule_CreateDict(NULL));
    if (RedisModule_DictSetC(names, (void *)name, len, NULL) != REDISMODULE_OK) return;
    c->count++;
    hold(c, name, len);
}

bool claims_has(const claims *c, uint64_t client, const char *name, size_t len) {
    return names_have(claims_of(c, client), name, len);
}

bool claims_any(const claims *c, const char *name, size_t len) {
    return value_of(c->held, name, len) != NULL;
}

static void let_go(claims *c, RedisModuleDict *names) {
    c->count -= RedisModule_DictSize(names);
    spent_take(&names, hold_no_more, c);
}

void claims_drop(claims *c, uint64_t client) {
    RedisModuleDict *names = NULL;
    if (!c->by) return;
    if (RedisModule_DictDelC(c->by, &client, sizeof client, &names) != REDISMODULE_OK) return;
    names_free_if_empty(&c->by);
    let_go(c, names);
}

void claims_keep(claims *c, bool (*needing)(uint64_t client)) {
    RedisModuleDict *all = c->by;
    if (!all) return;
    c->by = NULL;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(all, "^", NULL, 0);
    size_t len;
    void *names;
    const void *id;
    while ((id = RedisModule_DictNextC(it, &len, &names))) {
        uint64_t client;
        memcpy(&client, id, sizeof client);
        if (needing(client))
            give(c, client, names);
        else
            let_go(c, names);
    }
    RedisModule_DictIteratorStop(it);
    RedisModule_FreeDict(NULL, all);
}
