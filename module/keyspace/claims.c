/* claims.c: names, and which clients need them. See claims.h. */
#include "keyspace/claims.h"

#include "keyspace/spent.h"
#include "server/names.h"

#include <string.h>

static void hold(claims *c, const char *name, size_t len) {
    uintptr_t times = (uintptr_t)names_get(c->held, name, len) + 1;
    names_put(&c->held, name, len, (void *)times);
}

static void hold_no_more(void *context, const char *name, size_t len) {
    claims *c = context;
    uintptr_t times = (uintptr_t)names_get(c->held, name, len) - 1;
    if (times > 0)
        names_put(&c->held, name, len, (void *)times);
    else
        names_drop(&c->held, name, len);
}

RedisModuleDict *claims_of(const claims *c, uint64_t client) {
    return names_get(c->by, &client, sizeof client);
}

static void give(claims *c, uint64_t client, RedisModuleDict *names) {
    names_put(&c->by, &client, sizeof client, names);
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
    return names_have(c->held, name, len);
}

static void let_go(claims *c, RedisModuleDict *names) {
    c->count -= RedisModule_DictSize(names);
    spent_take(&names, hold_no_more, c);
}

void claims_drop(claims *c, uint64_t client) {
    RedisModuleDict *names = names_drop(&c->by, &client, sizeof client);
    if (names) let_go(c, names);
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
