/* numbered_names.c: see numbered_names.h. */
#include "keyspace/numbered_names.h"

#include "server/names.h"

#include <string.h>

static RedisModuleString *behind(uint64_t number, const char *name, size_t len) {
    RedisModuleString *all = RedisModule_CreateString(NULL, (const char *)&number, sizeof number);
    RedisModule_StringAppendBuffer(NULL, all, name, len);
    return all;
}

static RedisModuleString *numbered(uint64_t number, const RedisModuleString *name) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(name, &len);
    return behind(number, text, len);
}

static uint64_t split(const char *bytes, size_t len, RedisModuleString **name) {
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    *name = RedisModule_CreateString(NULL, bytes + sizeof number, len - sizeof number);
    return number;
}

static void add(RedisModuleDict **names, RedisModuleString *one) {
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(one, &len);
    names_put(names, bytes, len, NULL);
    RedisModule_FreeString(NULL, one);
}

void numbered_add(RedisModuleDict **names, uint64_t number, const RedisModuleString *name) {
    add(names, numbered(number, name));
}

bool numbered_has(RedisModuleDict *names, uint64_t number, const RedisModuleString *name) {
    size_t len;
    if (!names) return false;
    RedisModuleString *one = numbered(number, name);
    const char *bytes = RedisModule_StringPtrLen(one, &len);
    bool has = names_have(names, bytes, len);
    RedisModule_FreeString(NULL, one);
    return has;
}

void numbered_drop(RedisModuleDict **names, uint64_t number, const RedisModuleString *name) {
    size_t len;
    if (!*names) return;
    RedisModuleString *one = numbered(number, name);
    const char *bytes = RedisModule_StringPtrLen(one, &len);
    names_drop(names, bytes, len);
    RedisModule_FreeString(NULL, one);
}

void numbered_add_all(RedisModuleDict **names, uint64_t number, RedisModuleDict *others) {
    if (!others) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(others, "^", NULL, 0);
    const char *name;
    size_t len;
    while ((name = RedisModule_DictNextC(it, &len, NULL))) add(names, behind(number, name, len));
    RedisModule_DictIteratorStop(it);
}

void numbered_each(RedisModuleDict **names, numbered_handle *handle) {
    RedisModuleDict *taken = *names;
    if (!taken) return;
    *names = NULL;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(taken, "^", NULL, 0);
    const char *bytes;
    size_t len;
    while ((bytes = RedisModule_DictNextC(it, &len, NULL))) {
        RedisModuleString *name;
        uint64_t number = split(bytes, len, &name);
        handle(number, name);
        RedisModule_FreeString(NULL, name);
    }
    RedisModule_DictIteratorStop(it);
    RedisModule_FreeDict(NULL, taken);
}

size_t numbered_some(RedisModuleDict *names, RedisModuleString **next, RedisModuleString **list,
                     size_t most) {
    size_t count = 0, len;
    const char *from = *next ? RedisModule_StringPtrLen(*next, &len) : NULL;
    RedisModuleDictIter *it = from ? RedisModule_DictIteratorStartC(names, ">", (void *)from, len)
                                   : RedisModule_DictIteratorStartC(names, "^", NULL, 0);
    const char *bytes;
    while (count < most && (bytes = RedisModule_DictNextC(it, &len, NULL)))
        list[count++] = RedisModule_CreateString(NULL, bytes, len);
    RedisModule_DictIteratorStop(it);
    if (*next) RedisModule_FreeString(NULL, *next);
    *next = count == most ? RedisModule_CreateStringFromString(NULL, list[count - 1]) : NULL;
    return count;
}

uint64_t numbered_split(const RedisModuleString *numbered, RedisModuleString **name) {
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(numbered, &len);
    return split(bytes, len, name);
}
