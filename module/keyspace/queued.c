/* queued.c: keys that a transaction leaves to the server. See queued.h. */
#include "keyspace/queued.h"

/* Where transactions never end all at once, keys that were remembered so many keys ago are let go.
 */
#define KEYS_MAX 50000

static RedisModuleDict *clients; /* in a transaction, by number; NULL: none */
static bool doubt = true;        /* some of others may be open */
static struct {
    bool any;             /* until they are listed, there may be some */
    RedisModuleDict *who; /* NULL: they have not been listed yet */
} unseen;
static struct { RedisModuleDict *newer, *older; /* NULL: none */ } keys;

static bool in_exec(void) {
    return RedisModule_GetContextFlags(NULL) & REDISMODULE_CTX_FLAGS_MULTI;
}

static void free_dict(RedisModuleDict **d) {
    if (*d) RedisModule_FreeDict(NULL, *d);
    *d = NULL;
}

static void add(RedisModuleDict **d, const void *key, size_t len) {
    if (!*d) *d = RedisModule_CreateDict(NULL);
    RedisModule_DictSetC(*d, (void *)key, len, NULL);
}

static bool holds(RedisModuleDict *d, const void *key, size_t len) {
    int missing = 1;
    if (d) RedisModule_DictGetC(d, (void *)key, len, &missing);
    return !missing;
}

/* What was remembered is needed until the last EXEC is through. */
static void forget_if_done(void) {
    if (clients || doubt || in_exec()) return;
    free_dict(&keys.newer);
    free_dict(&keys.older);
}

/* ---- transactions ---------------------------------------------------------------------------- */

void queued_begin(uint64_t client) {
    forget_if_done();
    if (client == QUEUED_ANYBODY)
        doubt = true;
    else
        add(&clients, &client, sizeof client);
}

void queued_end(uint64_t client) {
    if (client == QUEUED_ANYBODY) return;
    if (unseen.who) RedisModule_DictDelC(unseen.who, &client, sizeof client, NULL);
    if (!clients) return;
    RedisModule_DictDelC(clients, &client, sizeof client, NULL);
    if (RedisModule_DictSize(clients) == 0) free_dict(&clients);
}

void queued_begin_unseen(void) {
    free_dict(&unseen.who);
    unseen.any = true;
}

void queued_list_unseen(const uint64_t *list, size_t count) {
    RedisModuleDict *still = RedisModule_CreateDict(NULL);
    for (size_t i = 0; i < count; i++)
        if (!unseen.who || holds(unseen.who, &list[i], sizeof *list))
            RedisModule_DictSetC(still, (void *)&list[i], sizeof *list, NULL);
    free_dict(&unseen.who);
    unseen.who = still;
    unseen.any = RedisModule_DictSize(still) > 0;
}

bool queued_unseen(void) {
    return unseen.any;
}

bool queued_open(uint64_t client) {
    if (doubt) return true;
    return client == QUEUED_ANYBODY ? clients != NULL : holds(clients, &client, sizeof client);
}

void queued_counted(size_t transactions) {
    doubt = transactions > (clients ? RedisModule_DictSize(clients) : 0);
    forget_if_done();
}

bool queued_doubted(void) {
    return doubt;
}

/* ---- keys ------------------------------------------------------------------------------------ */

void queued_note(const char *key, size_t len) {
    forget_if_done();
    if (keys.newer && RedisModule_DictSize(keys.newer) >= KEYS_MAX) {
        free_dict(&keys.older);
        keys.older = keys.newer;
        keys.newer = NULL;
    }
    add(&keys.newer, key, len);
}

bool queued_holds(const RedisModuleString *key) {
    size_t len;
    forget_if_done();
    if (!keys.newer && !keys.older) return false;
    const char *text = RedisModule_StringPtrLen(key, &len);
    return holds(keys.newer, text, len) || holds(keys.older, text, len);
}
