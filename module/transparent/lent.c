/* lent.c: what a replica in a cluster lends. See lent.h. */
#include "transparent/lent.h"

#include "keyspace/queued.h"
#include "server/clock.h"
#include "server/loop.h"
#include "server/pause.h"
#include "server/role.h"
#include "transparent/move_calls.h"
#include "transparent/serve_key.h"
#include "transparent/transactions.h"

#include <string.h>

/* NULL: none. */
static RedisModuleDict *lent;

/* What transactions need: a client's number and a key behind it. More than so many are not kept. */
#define NEEDED_MAX 50000
static RedisModuleDict *needed;

/* Redis 7.0 does not tell whose EXEC comes, the primary's, of which there are many, or that of a
 * client which has queued some. There, what was lent in the last second or two leaves with each,
 * and it is of QUEUED_ANYBODY. */
#define RECENT_US  1000000
#define RECENT_MAX 64
static uint64_t recent_us;
static RedisModuleDict *older; /* keys that were needed a second ago */

static bool knows_senders(void) {
    return RedisModule_CommandFilterGetClientId != NULL;
}

/* ---- what transactions need ------------------------------------------------------------------ */

static RedisModuleString *name_of(uint64_t client, const RedisModuleString *key) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    RedisModuleString *name = RedisModule_CreateString(NULL, (const char *)&client, sizeof client);
    RedisModule_StringAppendBuffer(NULL, name, text, len);
    return name;
}

static void age(void) {
    uint64_t now_us = clock_monotonic_us();
    if (knows_senders() || now_us - recent_us < RECENT_US) return;
    recent_us = now_us;
    if (older) RedisModule_FreeDict(NULL, older);
    older = needed;
    needed = NULL;
}

static void need(uint64_t client, const RedisModuleString *key) {
    age();
    uint64_t most = knows_senders() ? NEEDED_MAX : RECENT_MAX;
    if (needed && RedisModule_DictSize(needed) >= most) return;
    RedisModuleString *name = name_of(client, key);
    move_calls_add(&needed, name);
    RedisModule_FreeString(NULL, name);
}

/* Adds to `keys` those that a client needs, of all clients if it is NULL. */
static void gather(RedisModuleDict *from, const uint64_t *client, RedisModuleDict **keys) {
    if (!from) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(
        from, client ? ">=" : "^", (void *)client, client ? sizeof *client : 0);
    const char *name;
    size_t len;
    while ((name = RedisModule_DictNextC(it, &len, NULL))) {
        if (client && memcmp(name, client, sizeof *client)) break;
        RedisModuleString *key =
            RedisModule_CreateString(NULL, name + sizeof *client, len - sizeof *client);
        move_calls_add(keys, key);
        RedisModule_FreeString(NULL, key);
    }
    RedisModule_DictIteratorStop(it);
}

static uint64_t ending; /* the client whose transaction it is */

static void forget(RedisModuleString *key) {
    RedisModuleString *name = name_of(ending, key);
    RedisModule_DictDel(needed, name, NULL);
    RedisModule_FreeString(NULL, name);
}

void lent_forget(uint64_t client) {
    RedisModuleDict *keys = NULL;
    if (!needed || client == QUEUED_ANYBODY) return;
    gather(needed, &client, &keys);
    ending = client;
    move_calls_each(&keys, forget);
    if (RedisModule_DictSize(needed) > 0) return;
    RedisModule_FreeDict(NULL, needed);
    needed = NULL;
}

void lent_to_exec(uint64_t client, void (*leave)(RedisModuleString *key)) {
    RedisModuleDict *keys = NULL;
    if (!role_mirrors()) return;
    age();
    gather(needed, &client, &keys);
    gather(older, &client, &keys);
    lent_forget(client);
    move_calls_each(&keys, leave);
}

/* ---- lending --------------------------------------------------------------------------------- */

/* What somebody waits to write by now stays, and is told. */
static void take_back(RedisModuleString *key) {
    bool stays = !role_mirrors() && queued_holds(key);
    move_call(stays ? SERVE_MOVE_OUT_UNASKED : SERVE_MOVE_BACK_UNASKED, key);
}

/* Not in EXEC, where a script's commands come by as well. */
static void take_back_all(RedisModuleCtx *ctx) {
    (void)ctx;
    bool within = RedisModule_GetContextFlags(NULL) & REDISMODULE_CTX_FLAGS_MULTI;
    if (within || pause_holds() || transactions_held_back()) return;
    move_calls_each(&lent, take_back);
    if (!lent) loop_set(LOOP_LENT, NULL);
}

void lent_note(uint64_t client, const RedisModuleString *key, bool queued) {
    if (!role_mirrors()) return;
    move_calls_add(&lent, key);
    loop_set(LOOP_LENT, take_back_all);
    if (queued) need(client, key);
}

static void free_dict(RedisModuleDict **d) {
    if (*d) RedisModule_FreeDict(NULL, *d);
    *d = NULL;
}

void lent_settle(void (*leave)(RedisModuleString *key)) {
    RedisModuleDict *keys = NULL;
    if (lent) take_back_all(ckv.ctx);
    if ((!needed && !older) || role_mirrors()) return;
    gather(needed, NULL, &keys);
    gather(older, NULL, &keys);
    free_dict(&needed);
    free_dict(&older);
    move_calls_each(&keys, leave);
}
