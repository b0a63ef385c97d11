/* queued.c: keys that a transaction leaves to the server. See queued.h. */
#include "keyspace/queued.h"

#include "server/role.h"

#include <string.h>

/* Where transactions never end all at once, keys that were remembered so many keys ago are let go,
 * if all have begun since; of those whose beginning is not known, so many. */
#define KEYS_MAX         50000
#define LONG_NAME        128 /* bytes: counts as one name more */
#define KEYS_MAX_DOUBTED (16 * KEYS_MAX)

/* In a transaction, by number: the generation of keys in which it began. NULL: none. */
static RedisModuleDict *clients;
static bool doubt = true; /* some of others may be open */
static struct {
    bool any;             /* until they are listed, there may be some */
    RedisModuleDict *who; /* NULL: they have not been listed yet */
} unseen;
static struct {
    RedisModuleDict *newer, *older; /* NULL: none */
    uintptr_t generation;           /* of the newer ones */
    uint64_t size;                  /* of the newer ones: names */
    uint64_t most;                  /* before the older ones may go */
} keys = {.most = KEYS_MAX};
/* NULL: none. Names, and how many clients have sent each in their last command that may block; and
 * these clients' names, one behind the other. */
static RedisModuleDict *awaited, *waiting;
/* Of these the names that anybody has sent, as in keys.size; and whether they were too many to
 * keep.
 */
static struct {
    uint64_t size;
    bool all; /* counts as awaited */
} by_anybody;

static bool in_exec(void) {
    return RedisModule_GetContextFlags(NULL) & REDISMODULE_CTX_FLAGS_MULTI;
}

static void free_dict(RedisModuleDict **d) {
    if (*d) RedisModule_FreeDict(NULL, *d);
    *d = NULL;
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
    keys.size = 0;
    keys.most = KEYS_MAX;
}

/* ---- transactions ---------------------------------------------------------------------------- */

void queued_begin(uint64_t client) {
    forget_if_done();
    if (client == QUEUED_ANYBODY) {
        doubt = true;
        return;
    }
    if (!clients) clients = RedisModule_CreateDict(NULL);
    /* A MULTI within a transaction is refused, and that goes on. */
    RedisModule_DictSetC(clients, &client, sizeof client, (void *)keys.generation);
}

void queued_end(uint64_t client) {
    if (client == QUEUED_ANYBODY) return;
    queued_await_begin(client);
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

/* Whether somebody has begun before the newer ones. */
static bool needs_older(void) {
    bool needed = keys.older && doubt && keys.most < KEYS_MAX_DOUBTED;
    if (!keys.older || !clients) return needed;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(clients, "^", NULL, 0);
    void *began;
    while (!needed && RedisModule_DictNextC(it, NULL, &began))
        needed = (uintptr_t)began < keys.generation;
    RedisModule_DictIteratorStop(it);
    return needed;
}

/* A MULTI that was refused, for want of permission, began nothing. */
static void forget_refused(void) {
    RedisModuleDict *all = clients;
    if (!all) return;
    clients = NULL;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(all, "^", NULL, 0);
    size_t len;
    void *began;
    const uint64_t *id;
    while ((id = RedisModule_DictNextC(it, &len, &began))) {
        RedisModuleClientInfo info = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
        uint64_t client;
        memcpy(&client, id, sizeof client);
        bool ended = RedisModule_GetClientInfoById(&info, client) == REDISMODULE_OK &&
                     !(info.flags & REDISMODULE_CLIENTINFO_FLAG_MULTI);
        if (ended) continue;
        if (!clients) clients = RedisModule_CreateDict(NULL);
        RedisModule_DictSetC(clients, &client, sizeof client, began);
    }
    RedisModule_DictIteratorStop(it);
    RedisModule_FreeDict(NULL, all);
}

/* Rarely asks again where the older ones are needed. */
static void age(void) {
    forget_refused();
    if (needs_older()) {
        keys.most *= 2;
        return;
    }
    free_dict(&keys.older);
    keys.older = keys.newer;
    keys.newer = NULL;
    keys.size = 0;
    keys.generation++;
    keys.most = KEYS_MAX;
}

void queued_note(const char *key, size_t len) {
    forget_if_done();
    if (holds(keys.newer, key, len)) return;
    if (keys.size >= keys.most) age();
    keys.size += 1 + len / LONG_NAME;
    if (!keys.newer) keys.newer = RedisModule_CreateDict(NULL);
    RedisModule_DictSetC(keys.newer, (void *)key, len, NULL);
}

typedef struct awaited_name {
    struct awaited_name *next;
    size_t len;
    char text[];
} awaited_name;

static void count_awaited(awaited_name *n, int by) {
    if (!awaited) awaited = RedisModule_CreateDict(NULL);
    uintptr_t count =
        (uintptr_t)RedisModule_DictGetC(awaited, n->text, n->len, NULL) + (uintptr_t)by;
    if (count > 0)
        RedisModule_DictReplaceC(awaited, n->text, n->len, (void *)count);
    else
        RedisModule_DictDelC(awaited, n->text, n->len, NULL);
    if (RedisModule_DictSize(awaited) == 0) free_dict(&awaited);
}

static void free_names(awaited_name *n) {
    while (n) {
        awaited_name *next = n->next;
        RedisModule_Free(n);
        n = next;
    }
}

static void let_go(awaited_name *names) {
    for (awaited_name *n = names; n; n = n->next) count_awaited(n, -1);
    free_names(names);
}

void queued_await_begin(uint64_t client) {
    if (client == QUEUED_ANYBODY || !waiting) return;
    awaited_name *names = NULL;
    RedisModule_DictDelC(waiting, &client, sizeof client, &names);
    let_go(names);
    if (RedisModule_DictSize(waiting) == 0) free_dict(&waiting);
}

/* Whether one more is kept: of a client that is not known nobody tells when it waits no more. */
static bool keeps_anybodys(const char *key, size_t len) {
    if (by_anybody.all || holds(awaited, key, len)) return false;
    by_anybody.size += 1 + len / LONG_NAME;
    by_anybody.all = by_anybody.size > KEYS_MAX;
    return !by_anybody.all;
}

void queued_await(uint64_t client, const char *key, size_t len) {
    if (client == QUEUED_ANYBODY && !keeps_anybodys(key, len)) return;
    if (!waiting) waiting = RedisModule_CreateDict(NULL);
    awaited_name *n = RedisModule_Alloc(sizeof *n + len);
    n->len = len;
    memcpy(n->text, key, len);
    n->next = RedisModule_DictGetC(waiting, &client, sizeof client, NULL);
    RedisModule_DictReplaceC(waiting, &client, sizeof client, n);
    count_awaited(n, 1);
}

bool queued_awaits(void) {
    return awaited || by_anybody.all;
}

bool queued_awaits_unknown(void) {
    uint64_t anybody = QUEUED_ANYBODY;
    return by_anybody.all || holds(waiting, &anybody, sizeof anybody);
}

static bool still_waits(uint64_t client) {
    RedisModuleClientInfo info = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
    return client == QUEUED_ANYBODY ||
           (RedisModule_GetClientInfoById(&info, client) == REDISMODULE_OK &&
            info.flags & REDISMODULE_CLIENTINFO_FLAG_BLOCKED);
}

void queued_await_look(void) {
    RedisModuleDict *all = waiting;
    if (!all) return;
    waiting = NULL;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(all, "^", NULL, 0);
    size_t len;
    void *names;
    const void *id;
    while ((id = RedisModule_DictNextC(it, &len, &names))) {
        uint64_t client;
        memcpy(&client, id, sizeof client);
        if (!still_waits(client)) {
            let_go(names);
            continue;
        }
        if (!waiting) waiting = RedisModule_CreateDict(NULL);
        RedisModule_DictSetC(waiting, &client, sizeof client, names);
    }
    RedisModule_DictIteratorStop(it);
    RedisModule_FreeDict(NULL, all);
}

void queued_await_no_more(void) {
    by_anybody.size = 0;
    by_anybody.all = false;
    if (!waiting) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(waiting, "^", NULL, 0);
    void *names;
    while (RedisModule_DictNextC(it, NULL, &names)) free_names(names);
    RedisModule_DictIteratorStop(it);
    free_dict(&waiting);
    free_dict(&awaited);
}

bool queued_holds_all(void) {
    return unseen.any || by_anybody.all;
}

bool queued_holds(const RedisModuleString *key) {
    size_t len;
    forget_if_done();
    bool any = unseen.any || keys.newer || keys.older || queued_awaits();
    if (!any || role_mirrors()) return false;
    if (unseen.any && !role_loads(ckv.ctx)) return true;
    if (by_anybody.all && !role_loads(ckv.ctx)) return true;
    const char *text = RedisModule_StringPtrLen(key, &len);
    return holds(keys.newer, text, len) || holds(keys.older, text, len) ||
           holds(awaited, text, len);
}
