/* names.c: see names.h. */
#include "server/names.h"

bool names_have(RedisModuleDict *names, const void *name, size_t len) {
    int missing = 1;
    if (names) RedisModule_DictGetC(names, (void *)name, len, &missing);
    return !missing;
}

void *names_get(RedisModuleDict *names, const void *name, size_t len) {
    return names ? RedisModule_DictGetC(names, (void *)name, len, NULL) : NULL;
}

void names_put(RedisModuleDict **names, const void *name, size_t len, void *value) {
    if (!*names) *names = RedisModule_CreateDict(NULL);
    RedisModule_DictReplaceC(*names, (void *)name, len, value);
}

void *names_drop(RedisModuleDict **names, const void *name, size_t len) {
    void *value = NULL;
    if (!*names) return NULL;
    RedisModule_DictDelC(*names, (void *)name, len, &value);
    if (RedisModule_DictSize(*names) == 0) names_free(names);
    return value;
}

RedisModuleDict *names_among(RedisModuleDict *names, const uint64_t *numbers, size_t count) {
    RedisModuleDict *among = NULL;
    for (size_t i = 0; i < count; i++)
        if (!names || names_have(names, &numbers[i], sizeof *numbers))
            names_put(&among, &numbers[i], sizeof *numbers, NULL);
    return among;
}

void names_free(RedisModuleDict **names) {
    if (*names) RedisModule_FreeDict(NULL, *names);
    *names = NULL;
}

void names_free_values(RedisModuleDict **names) {
    void *value;
    if (!*names) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(*names, "^", NULL, 0);
    while (RedisModule_DictNextC(it, NULL, &value)) RedisModule_Free(value);
    RedisModule_DictIteratorStop(it);
    names_free(names);
}
