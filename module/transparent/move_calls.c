/* move_calls.c: see move_calls.h. */
#include "transparent/move_calls.h"

#include "keyspace/maps.h"
#include "server/acl.h"
#include "server/own_call.h"

void move_call(const char *command, RedisModuleString *key) {
    bool trusted = acl_trust(true);
    for (int db = 0; db < maps_dbs(); db++) {
        RedisModule_SelectDb(ckv.ctx, db);
        RedisModuleCallReply *reply = own_call(ckv.ctx, command, "!s", key);
        if (reply) RedisModule_FreeCallReply(reply);
    }
    acl_trust(trusted);
}

void move_calls_add(RedisModuleDict **keys, const RedisModuleString *key) {
    if (!*keys) *keys = RedisModule_CreateDict(NULL);
    RedisModule_DictSet(*keys, (RedisModuleString *)key, NULL);
}

void move_calls_each(RedisModuleDict **keys, void (*handle)(RedisModuleString *key)) {
    RedisModuleDict *taken = *keys;
    if (!taken) return;
    *keys = NULL;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(taken, "^", NULL, 0);
    RedisModuleString *key;
    while ((key = RedisModule_DictNext(NULL, it, NULL))) {
        handle(key);
        RedisModule_FreeString(NULL, key);
    }
    RedisModule_DictIteratorStop(it);
    RedisModule_FreeDict(NULL, taken);
}
