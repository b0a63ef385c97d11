/* queued.c: keys that a transaction leaves to the server. See queued.h. */
#include "keyspace/queued.h"

/* Noted since the last count, and before. NULL: none. */
static RedisModuleDict *recent, *older;
static bool open;

static void forget(RedisModuleDict **keys) {
    if (*keys) RedisModule_FreeDict(NULL, *keys);
    *keys = NULL;
}

/* What is recent becomes older. */
static void keep_recent(void) {
    if (!older) {
        older = recent;
        recent = NULL;
        return;
    }
    if (!recent) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(recent, "^", NULL, 0);
    size_t len;
    const char *key;
    while ((key = RedisModule_DictNextC(it, &len, NULL)))
        RedisModule_DictSetC(older, (void *)key, len, NULL);
    RedisModule_DictIteratorStop(it);
    forget(&recent);
}

void queued_begin(void) {
    open = true;
}

bool queued_open(void) {
    return open;
}

void queued_correct(bool counted, bool busy) {
    open = counted;
    if (open && busy) keep_recent();
    forget(&recent); /* of transactions that are through, or of no transaction */
    if (!open) forget(&older);
}

void queued_note(const char *key, size_t len) {
    if (!open) return;
    if (!recent) recent = RedisModule_CreateDict(NULL);
    RedisModule_DictSetC(recent, (void *)key, len, NULL);
}

static bool has(RedisModuleDict *keys, RedisModuleString *key) {
    int missing = 1;
    if (keys) RedisModule_DictGet(keys, key, &missing);
    return !missing;
}

bool queued_holds(RedisModuleString *key) {
    return has(recent, key) || has(older, key);
}
