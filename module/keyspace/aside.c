/* aside.c: strings that are left to the server for a while. See aside.h. */
#include "keyspace/aside.h"

#include "keyspace/spent.h"
#include "server/clock.h"
#include "server/names.h"

#define GENERATION_US 60000000
#define NAMES_MAX     50000     /* in a generation */
#define BYTES_MAX     (8 << 20) /* of these names */
/* Where memory is short a generation is over as soon as it is so old or has so many names: what is
 * used again and again is among fewer. */
#define SHORT_US    1000000
#define SHORT_NAMES 64

typedef struct generations {
    RedisModuleDict *newer, *older; /* without names of the newer one; NULL: none */
    size_t bytes;                   /* of the names of the newer one */
    uint64_t since_us;              /* when it began */
} generations;

/* Those that may come back early, and the others. */
static generations loose, kept;
static bool lost;

/* Takes the first name out of a generation. */
static RedisModuleString *take_first(RedisModuleDict **d) {
    size_t len;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(*d, "^", NULL, 0);
    RedisModuleString *name = RedisModule_DictNext(NULL, it, NULL);
    RedisModule_DictIteratorStop(it);
    const char *bytes = RedisModule_StringPtrLen(name, &len);
    names_drop(d, bytes, len);
    return name;
}

static void age(generations *g) {
    lost |= g->older != NULL;
    spent_take(&g->older, NULL, NULL);
    g->older = g->newer;
    g->newer = NULL;
    g->bytes = 0;
    g->since_us = clock_monotonic_us();
}

static void note(generations *g, const char *key, size_t len) {
    if (names_have(g->newer, key, len)) return;
    spent_free_some();
    if (g->newer && (RedisModule_DictSize(g->newer) >= NAMES_MAX || g->bytes >= BYTES_MAX)) age(g);
    if (!g->newer && !g->older) g->since_us = clock_monotonic_us();
    names_put(&g->newer, key, len, NULL);
    g->bytes += len;
    names_drop(&g->older, key, len);
}

static bool has(const generations *g, const char *key, size_t len) {
    return names_have(g->newer, key, len) || names_have(g->older, key, len);
}

void aside_note(const RedisModuleString *name) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    note(has(&kept, key, len) ? &kept : &loose, key, len);
}

void aside_keep(const RedisModuleString *name) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    names_drop(&loose.newer, key, len);
    names_drop(&loose.older, key, len);
    note(&kept, key, len);
}

bool aside_has(const RedisModuleString *name) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    return has(&loose, key, len) || has(&kept, key, len);
}

static RedisModuleString *next_due(generations *g) {
    if (clock_monotonic_us() - g->since_us < GENERATION_US) return NULL;
    if (g->older) return take_first(&g->older);
    if (g->newer) age(g);
    return NULL;
}

RedisModuleString *aside_next_due(void) {
    RedisModuleString *name = next_due(&loose);
    return name ? name : next_due(&kept);
}

bool aside_any_early(void) {
    return loose.older || (loose.newer && (RedisModule_DictSize(loose.newer) >= SHORT_NAMES ||
                                           clock_monotonic_us() - loose.since_us >= SHORT_US));
}

RedisModuleString *aside_next_early(void) {
    if (!aside_any_early()) return NULL;
    if (!loose.older) age(&loose);
    return take_first(&loose.older);
}

bool aside_has_lost(void) {
    bool before = lost;
    lost = false;
    return before;
}
