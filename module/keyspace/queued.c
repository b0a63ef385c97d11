/* queued.c: keys that a transaction leaves to the server. See queued.h. */
#include "keyspace/queued.h"

#include "keyspace/claims.h"
#include "keyspace/spent.h"
#include "server/names.h"
#include "server/role.h"
#include "server/within.h"

/* Names. Where it is never sure that no transaction is open, those that others have sent are let go
 * when so many more have come. */
#define OTHERS_MAX 800000
#define KEYS_MAX   50000

static RedisModuleDict *clients; /* in a transaction, by number; NULL: none */
static bool doubt = true;        /* some of others may be open */
static struct {
    bool any;             /* until they are listed, there may be some */
    RedisModuleDict *who; /* NULL: they have not been listed yet */
} unseen;
/* Keys of clients in a transaction, and when they are looked through for some that are in none. */
static claims queued;
static size_t look_at = KEYS_MAX;
/* Whose EXEC has come, of those who have such keys, and may have yet to run. */
static struct {
    uint64_t last; /* QUEUED_ANYBODY: nobody's */
    bool others;
} ending;
/* Keys of others, who may be in one. */
static struct {
    RedisModuleDict *newer, *older; /* NULL: none */
    uint64_t size;                  /* of the newer ones: names */
} keys;
/* Keys that a client's last command that may block has named. */
static claims awaited;
/* Of these the names that anybody has sent, as in keys.size; and whether they were too many to
 * keep.
 */
static struct {
    uint64_t size;
    bool all; /* counts as awaited */
} by_anybody;

/* ---- transactions ---------------------------------------------------------------------------- */

/* REDISMODULE_CLIENTINFO_FLAG_*; not of who is gone. */
static bool has_flag(uint64_t client, uint64_t flag) {
    RedisModuleClientInfo info = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
    return RedisModule_GetClientInfoById(&info, client) == REDISMODULE_OK && info.flags & flag;
}

bool queued_in_transaction(uint64_t client) {
    return has_flag(client, REDISMODULE_CLIENTINFO_FLAG_MULTI);
}

static void leave_clients(uint64_t client) {
    names_drop(&clients, &client, sizeof client);
}

/* A MULTI that was refused, for want of permission, began nothing; and nobody tells that a
 * primary's transaction was broken off. */
static bool needs_keys(uint64_t client) {
    bool open = queued_in_transaction(client);
    if (!open) leave_clients(client);
    return open;
}

/* Whose EXEC is through needs its keys no more. While there is doubt, something may be held back:
 * then that is asked when somebody counts. */
static void forget_if_done(void) {
    if (ending.last == QUEUED_ANYBODY || doubt || within_exec()) return;
    if (ending.others) claims_keep(&queued, needs_keys);
    ending.others = false;
    if (queued_in_transaction(ending.last)) return;
    claims_drop(&queued, ending.last);
    ending.last = QUEUED_ANYBODY;
}

void queued_begin(uint64_t client) {
    forget_if_done();
    if (client == QUEUED_ANYBODY) {
        doubt = true;
        return;
    }
    names_put(&clients, &client, sizeof client, NULL);
}

static void end(uint64_t client) {
    if (client == QUEUED_ANYBODY) return;
    queued_await_begin(client);
    /* It stays when it is empty: without one nobody has told yet who they are. */
    if (unseen.who) RedisModule_DictDelC(unseen.who, &client, sizeof client, NULL);
    leave_clients(client);
}

void queued_exec(uint64_t client) {
    forget_if_done();
    end(client);
    if (!claims_of(&queued, client)) return;
    ending.others |= ending.last != QUEUED_ANYBODY && ending.last != client;
    ending.last = client;
}

void queued_end(uint64_t client) {
    end(client);
    claims_drop(&queued, client);
}

void queued_begin_unseen(void) {
    names_free(&unseen.who);
    unseen.any = true;
}

void queued_list_unseen(const uint64_t *list, size_t count) {
    RedisModuleDict *still = names_among(unseen.who, list, count);
    names_free(&unseen.who);
    unseen.who = still;
    unseen.any = still != NULL;
}

bool queued_unseen(void) {
    return unseen.any;
}

bool queued_open(uint64_t client) {
    if (doubt) return true;
    return client == QUEUED_ANYBODY ? clients != NULL : names_have(clients, &client, sizeof client);
}

void queued_counted(size_t transactions) {
    claims_keep(&queued, needs_keys);
    ending.last = QUEUED_ANYBODY;
    ending.others = false;
    doubt = transactions > (clients ? RedisModule_DictSize(clients) : 0);
    if (doubt) return;
    spent_take(&keys.newer, NULL, NULL);
    spent_take(&keys.older, NULL, NULL);
    keys.size = 0;
}

bool queued_doubted(void) {
    return doubt;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void age(void) {
    spent_take(&keys.older, NULL, NULL);
    keys.older = keys.newer;
    keys.newer = NULL;
    keys.size = 0;
}

static void note_anybodys(const char *key, size_t len) {
    if (names_have(keys.newer, key, len)) return;
    spent_free_some();
    if (keys.size >= OTHERS_MAX) age();
    keys.size += names_cost(len);
    names_put(&keys.newer, key, len, NULL);
}

/* What is queued, not what is held back. */
static bool is_queued_by(uint64_t client) {
    return client != QUEUED_ANYBODY && (!doubt || queued_in_transaction(client));
}

void queued_note(uint64_t client, const char *key, size_t len) {
    forget_if_done();
    if (!is_queued_by(client)) {
        note_anybodys(key, len);
        return;
    }
    claims_add(&queued, client, key, len);
    if (queued.count < look_at) return;
    claims_keep(&queued, needs_keys);
    look_at = 2 * queued.count > KEYS_MAX ? 2 * queued.count : KEYS_MAX;
}

/* ---- keys that somebody waits for ------------------------------------------------------------ */

void queued_await_begin(uint64_t client) {
    if (client != QUEUED_ANYBODY) claims_drop(&awaited, client);
}

/* Whether one more is kept: of a client that is not known nobody tells when it waits no more. */
static bool keeps_anybodys(const char *key, size_t len) {
    if (by_anybody.all || claims_has(&awaited, QUEUED_ANYBODY, key, len)) return false;
    by_anybody.size += names_cost(len);
    by_anybody.all = by_anybody.size > KEYS_MAX;
    return !by_anybody.all;
}

void queued_await(uint64_t client, const char *key, size_t len) {
    if (client == QUEUED_ANYBODY && !keeps_anybodys(key, len)) return;
    claims_add(&awaited, client, key, len);
}

bool queued_awaits(void) {
    return awaited.by || by_anybody.all;
}

bool queued_awaits_unknown(void) {
    return by_anybody.all || claims_of(&awaited, QUEUED_ANYBODY);
}

static bool still_waits(uint64_t client) {
    return client == QUEUED_ANYBODY || has_flag(client, REDISMODULE_CLIENTINFO_FLAG_BLOCKED);
}

void queued_await_look(void) {
    claims_keep(&awaited, still_waits);
}

static bool waits_no_more(uint64_t client) {
    (void)client;
    return false;
}

void queued_await_no_more(void) {
    by_anybody.size = 0;
    by_anybody.all = false;
    claims_keep(&awaited, waits_no_more);
}

/* ---- who asks -------------------------------------------------------------------------------- */

bool queued_has_all(void) {
    return unseen.any || by_anybody.all;
}

bool queued_has(const RedisModuleString *key) {
    size_t len;
    forget_if_done();
    bool any =
        unseen.any || queued.held || keys.newer || keys.older || awaited.held || by_anybody.all;
    if (!any || role_mirrors() || role_loads(ckv.ctx)) return false;
    if (unseen.any || by_anybody.all) return true;
    const char *text = RedisModule_StringPtrLen(key, &len);
    return claims_any(&queued, text, len) || names_have(keys.newer, text, len) ||
           names_have(keys.older, text, len) || claims_any(&awaited, text, len);
}

bool queued_any(void) {
    return queued.held || keys.newer || keys.older;
}

static void each(RedisModuleDict *names, queued_told *told) {
    if (!names) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(names, "^", NULL, 0);
    const char *name;
    size_t len;
    while ((name = RedisModule_DictNextC(it, &len, NULL))) told(name, len);
    RedisModule_DictIteratorStop(it);
}

void queued_each(uint64_t client, queued_told *told) {
    each(claims_of(&queued, client), told);
    if (client != QUEUED_ANYBODY) return;
    each(keys.newer, told);
    each(keys.older, told);
}
