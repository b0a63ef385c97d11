/* aside.c: strings that are left to the server for a while. See aside.h. */
#include "keyspace/aside.h"

#include "server/clock.h"

#define GENERATION_US 60000000
#define NAMES_MAX     50000 /* in a generation */

static struct {
    RedisModuleDict *newer, *older; /* NULL: none */
    uint64_t since_us;              /* when the newer one began */
    bool lost;
} names;

static bool holds(RedisModuleDict *d, const void *key, size_t len) {
    int missing = 1;
    if (d) RedisModule_DictGetC(d, (void *)key, len, &missing);
    return !missing;
}

static void age(void) {
    names.lost |= names.older != NULL;
    if (names.older) RedisModule_FreeDict(NULL, names.older);
    names.older = names.newer;
    names.newer = NULL;
    names.since_us = clock_monotonic_us();
}

void aside_note(const char *key, size_t len) {
    if (names.newer && RedisModule_DictSize(names.newer) >= NAMES_MAX) age();
    if (!names.newer) {
        names.newer = RedisModule_CreateDict(NULL);
        if (!names.older) names.since_us = clock_monotonic_us();
    }
    RedisModule_DictSetC(names.newer, (void *)key, len, NULL);
}

bool aside_holds(const RedisModuleString *key) {
    size_t len;
    if (!names.newer && !names.older) return false;
    const char *text = RedisModule_StringPtrLen(key, &len);
    return holds(names.newer, text, len) || holds(names.older, text, len);
}

/* Takes the first name out of the older generation, which has one. */
static RedisModuleString *take_first(void) {
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(names.older, "^", NULL, 0);
    RedisModuleString *name = RedisModule_DictNext(NULL, it, NULL);
    RedisModule_DictIteratorStop(it);
    RedisModule_DictDel(names.older, name, NULL);
    if (RedisModule_DictSize(names.older) == 0) {
        RedisModule_FreeDict(NULL, names.older);
        names.older = NULL;
    }
    return name;
}

RedisModuleString *aside_next_due(void) {
    if (clock_monotonic_us() - names.since_us < GENERATION_US) return NULL;
    while (names.older) {
        RedisModuleString *name = take_first();
        if (!aside_holds(name)) return name;
        RedisModule_FreeString(NULL, name);
    }
    if (names.newer) age();
    return NULL;
}

bool aside_has_lost(void) {
    bool lost = names.lost;
    names.lost = false;
    return lost;
}
