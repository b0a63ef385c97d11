/* queued.c: keys that a transaction leaves to the server. See queued.h. */
#include "keyspace/queued.h"

static RedisModuleDict *keys; /* NULL: none */
static size_t transactions;
static bool in_doubt = true; /* one may be open that was not seen to begin, or to end */

static bool in_exec(void) {
    return RedisModule_GetContextFlags(NULL) & REDISMODULE_CTX_FLAGS_MULTI;
}

/* What was remembered is needed until the last EXEC is through. */
static void forget_if_done(void) {
    if (!keys || transactions > 0 || in_exec()) return;
    RedisModule_FreeDict(NULL, keys);
    keys = NULL;
}

void queued_begin(void) {
    forget_if_done();
    transactions++;
    in_doubt = true;
}

void queued_end(void) {
    if (transactions > 0) transactions--;
}

bool queued_open(void) {
    return transactions > 0;
}

bool queued_surely_none(void) {
    return !in_doubt;
}

void queued_doubt(void) {
    in_doubt = true;
}

void queued_correct(size_t counted) {
    transactions = counted;
    in_doubt = counted > 0;
    forget_if_done();
}

void queued_note(const char *key, size_t len) {
    forget_if_done();
    if (transactions == 0) return;
    if (!keys) keys = RedisModule_CreateDict(NULL);
    RedisModule_DictSetC(keys, (void *)key, len, NULL);
}

bool queued_holds(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (!keys || !(RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_MULTI)) return false;
    int missing;
    RedisModule_DictGet(keys, key, &missing);
    return !missing;
}

void queued_each(queued_visitor *each) {
    if (!keys) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(keys, "^", NULL, 0);
    RedisModuleString *key;
    while ((key = RedisModule_DictNext(NULL, it, NULL))) {
        each(key);
        RedisModule_FreeString(NULL, key);
    }
    RedisModule_DictIteratorStop(it);
}
