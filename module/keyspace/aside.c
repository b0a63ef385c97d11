/* aside.c: strings that are left to the server for a while. See aside.h. */
#include "keyspace/aside.h"

#include "keyspace/names.h"
#include "keyspace/spent.h"
#include "server/clock.h"

#define GENERATION_US 60000000
#define NAMES_MAX     50000     /* in a generation */
#define BYTES_MAX     (8 << 20) /* of these names */
/* Where memory is short a generation is over as soon as it is so old or has so many names: what is
 * used again and again is among fewer. */
#define SHORT_US    1000000
#define SHORT_NAMES 64

/* What a name stands for. */
static char watched_mark;
#define WATCHED ((void *)&watched_mark)

static struct {
    RedisModuleDict *newer, *older; /* without names of the newer one; NULL: none. A name may be
                                       marked as WATCHED */
    size_t bytes;                   /* of the names of the newer one */
    uint64_t since_us;              /* when it began */
    bool lost;
} names;

/* Takes the first name out of a generation, and its mark. */
static RedisModuleString *take_first(RedisModuleDict **d, void **mark) {
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(*d, "^", NULL, 0);
    RedisModuleString *name = RedisModule_DictNext(NULL, it, mark);
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

static void note(const RedisModuleString *name, void *mark) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    if (names_have(names.newer, key, len)) {
        if (mark) RedisModule_DictReplaceC(names.newer, (void *)key, len, mark);
        return;
    }
    spent_free_some();
    if (names.newer && (RedisModule_DictSize(names.newer) >= NAMES_MAX || names.bytes >= BYTES_MAX))
        age();
    if (!names.newer) {
        names.newer = RedisModule_CreateDict(NULL);
        if (!names.older) names.since_us = clock_monotonic_us();
    }
    void *older = names.older ? RedisModule_DictGetC(names.older, (void *)key, len, NULL) : NULL;
    RedisModule_DictSetC(names.newer, (void *)key, len, mark ? mark : older);
    names.bytes += len;
    if (!names.older) return;
    RedisModule_DictDelC(names.older, (void *)key, len, NULL);
    names_free_if_empty(&names.older);
}

void aside_note(const RedisModuleString *name) {
    note(name, NULL);
}

void aside_note_watched(const RedisModuleString *name) {
    note(name, WATCHED);
}

bool aside_has(const RedisModuleString *name) {
    size_t len;
    if (!names.newer && !names.older) return false;
    const char *key = RedisModule_StringPtrLen(name, &len);
    return names_have(names.newer, key, len) || names_have(names.older, key, len);
}

RedisModuleString *aside_next_due(void) {
    if (clock_monotonic_us() - names.since_us < GENERATION_US) return NULL;
    void *mark;
    if (names.older) return take_first(&names.older, &mark);
    if (names.newer) age();
    return NULL;
}

bool aside_any_early(void) {
    return names.older || (names.newer && (RedisModule_DictSize(names.newer) >= SHORT_NAMES ||
                                           clock_monotonic_us() - names.since_us >= SHORT_US));
}

RedisModuleString *aside_next_early(void) {
    void *mark = NULL;
    if (!aside_any_early()) return NULL;
    if (!names.older) age();
    RedisModuleString *name = take_first(&names.older, &mark);
    if (!mark) return name;
    note(name, mark);
    RedisModule_FreeString(NULL, name);
    return NULL;
}

bool aside_has_lost(void) {
    bool lost = names.lost;
    names.lost = false;
    return lost;
}
