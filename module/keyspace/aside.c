/* aside.c: strings that are left to the server for a while. See aside.h. */
#include "keyspace/aside.h"

#include "keyspace/names.h"
#include "keyspace/spent.h"
#include "server/clock.h"

#define GENERATION_US 60000000
#define NAMES_MAX     50000     /* in a generation */
#define BYTES_MAX     (8 << 20) /* of these names */

static struct {
    RedisModuleDict *newer, *older; /* without names of the newer one; NULL: none */
    size_t bytes;                   /* of the names of the newer one */
    uint64_t since_us;              /* when it began */
    bool lost;
} names;

/* Takes the first name out of a generation. */
static RedisModuleString *take_first(RedisModuleDict **d) {
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(*d, "^", NULL, 0);
    RedisModuleString *name = RedisModule_DictNext(NULL, it, NULL);
    RedisModule_DictIteratorStop(it);
    RedisModule_DictDel(*d, name, NULL);
    names_free_if_empty(d);
    return name;
}

static void age(void) {
    names.lost |= names.older != NULL;
    spent_take(&names.older, NULL, NULL);
    names.older = names.newer;
    names.newer = NULL;
    names.bytes = 0;
    names.since_us = clock_monotonic_us();
}

void aside_note(const RedisModuleString *name) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    if (names_have(names.newer, key, len)) return;
    spent_free_some();
    if (names.newer && (RedisModule_DictSize(names.newer) >= NAMES_MAX || names.bytes >= BYTES_MAX))
        age();
    if (!names.newer) {
        names.newer = RedisModule_CreateDict(NULL);
        if (!names.older) names.since_us = clock_monotonic_us();
    }
    RedisModule_DictSetC(names.newer, (void *)key, len, NULL);
    names.bytes += len;
    if (!names.older) return;
    RedisModule_DictDelC(names.older, (void *)key, len, NULL);
    names_free_if_empty(&names.older);
}

bool aside_has(const RedisModuleString *name) {
    size_t len;
    if (!names.newer && !names.older) return false;
    const char *key = RedisModule_StringPtrLen(name, &len);
    return names_have(names.newer, key, len) || names_have(names.older, key, len);
}

RedisModuleString *aside_next_due(void) {
    if (clock_monotonic_us() - names.since_us < GENERATION_US) return NULL;
    if (names.older) return take_first(&names.older);
    if (names.newer) age();
    return NULL;
}

bool aside_has_lost(void) {
    bool lost = names.lost;
    names.lost = false;
    return lost;
}
