/* names.c: see names.h. */
#include "keyspace/names.h"

bool names_have(RedisModuleDict *names, const void *name, size_t len) {
    int missing = 1;
    if (names) RedisModule_DictGetC(names, (void *)name, len, &missing);
    return !missing;
}

void names_free(RedisModuleDict **names) {
    if (*names) RedisModule_FreeDict(NULL, *names);
    *names = NULL;
}

void names_free_if_empty(RedisModuleDict **names) {
    if (RedisModule_DictSize(*names) == 0) names_free(names);
}
