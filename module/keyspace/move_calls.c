/* move_calls.c: see move_calls.h. */
#include "keyspace/move_calls.h"

#include "keyspace/names.h"
#include "server/acl.h"
#include "server/own_call.h"

#include <string.h>

void move_call(const char *command, uint64_t db, RedisModuleString *key) {
    bool trusted = acl_trust(true);
    RedisModule_SelectDb(ckv.ctx, (int)db);
    RedisModuleCallReply *reply = own_call(ckv.ctx, command, "!s", key);
    if (reply) RedisModule_FreeCallReply(reply);
    acl_trust(trusted);
}

static RedisModuleString *behind(uint64_t number, const char *key, size_t len) {
    RedisModuleString *name = RedisModule_CreateString(NULL, (const char *)&number, sizeof number);
    RedisModule_StringAppendBuffer(NULL, name, key, len);
    return name;
}

static RedisModuleString *name_of(uint64_t number, const RedisModuleString *key) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    return behind(number, text, len);
}

static void add(RedisModuleDict **keys, RedisModuleString *name) {
    if (!*keys) *keys = RedisModule_CreateDict(NULL);
    RedisModule_DictSet(*keys, name, NULL);
    RedisModule_FreeString(NULL, name);
}

void move_calls_add(RedisModuleDict **keys, uint64_t number, const RedisModuleString *key) {
    add(keys, name_of(number, key));
}

bool move_calls_has(RedisModuleDict *keys, uint64_t number, const RedisModuleString *key) {
    int missing = 1;
    if (!keys) return false;
    RedisModuleString *name = name_of(number, key);
    RedisModule_DictGet(keys, name, &missing);
    RedisModule_FreeString(NULL, name);
    return !missing;
}

void move_calls_drop(RedisModuleDict **keys, uint64_t number, const RedisModuleString *key) {
    if (!*keys) return;
    RedisModuleString *name = name_of(number, key);
    RedisModule_DictDel(*keys, name, NULL);
    RedisModule_FreeString(NULL, name);
    names_free_if_empty(keys);
}

void move_calls_add_all(RedisModuleDict **keys, uint64_t number, RedisModuleDict *names) {
    if (!names) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(names, "^", NULL, 0);
    const char *name;
    size_t len;
    while ((name = RedisModule_DictNextC(it, &len, NULL))) add(keys, behind(number, name, len));
    RedisModule_DictIteratorStop(it);
}

void move_calls_each(RedisModuleDict **keys, move_calls_handle *handle) {
    RedisModuleDict *taken = *keys;
    if (!taken) return;
    *keys = NULL;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(taken, "^", NULL, 0);
    const char *name;
    size_t len;
    while ((name = RedisModule_DictNextC(it, &len, NULL))) {
        uint64_t number;
        memcpy(&number, name, sizeof number);
        RedisModuleString *key =
            RedisModule_CreateString(NULL, name + sizeof number, len - sizeof number);
        handle(number, key);
        RedisModule_FreeString(NULL, key);
    }
    RedisModule_DictIteratorStop(it);
    RedisModule_FreeDict(NULL, taken);
}
