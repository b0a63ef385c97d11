/* leave.c: see leave.h. */
#include "transparent/leave.h"

#include "keyspace/aof_form.h"
#include "keyspace/aside.h"
#include "keyspace/maps.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/queued.h"
#include "server/acl.h"
#include "server/clock.h"
#include "server/loop.h"
#include "server/own_call.h"
#include "server/pause.h"
#include "server/role.h"
#include "transparent/serve_key.h"
#include "transparent/transactions.h"

/* Keys that moved out while a pause of all writes kept the AOF and replicas as they are. These are
 * told when that is over, before anything else. NULL: none. */
static RedisModuleDict *untold;

/* Keys that moved out for clients of this replica, in a cluster. Its primary knows nothing of that,
 * and when their slot leaves tells it to delete the map. So they come back before the next command,
 * or when the server has waited for one, and leave again with EXEC; when a replica has become a
 * primary, once and for all. NULL: none. */
static RedisModuleDict *lent;
static bool given_back; /* some have come back, which may be queued */

/* Redis 7.0 does not tell whose EXEC comes, the primary's, of which there are many, or that of a
 * client which has queued some. There those leave that were lent in the last second or two, and
 * RECENT_MAX at most. NULL: none. */
#define RECENT_US  1000000
#define RECENT_MAX 64
static RedisModuleDict *recent, *older;
static uint64_t recent_us;

/* ---- keys, and moving them ------------------------------------------------------------------- */

static void add(RedisModuleDict **keys, RedisModuleString *key) {
    if (!*keys) *keys = RedisModule_CreateDict(NULL);
    RedisModule_DictSet(*keys, key, NULL);
}

/* In every database. As a command of its own, which may tell an AOF: what a filter replicates goes
 * nowhere. */
static void call_move(const char *command, RedisModuleString *key) {
    bool trusted = acl_trust(true);
    for (int db = 0; db < maps_dbs(); db++) {
        RedisModule_SelectDb(ckv.ctx, db);
        RedisModuleCallReply *reply = own_call(ckv.ctx, command, "!s", key);
        if (reply) RedisModule_FreeCallReply(reply);
    }
    acl_trust(trusted);
}

/* Takes them all: who is told of a move may call commands, and so come by here again. */
static void each_of(RedisModuleDict **keys, void (*handle)(RedisModuleString *key)) {
    RedisModuleDict *taken = *keys;
    if (!taken) return;
    *keys = NULL;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(taken, "^", NULL, 0);
    RedisModuleString *key;
    while ((key = RedisModule_DictNext(NULL, it, NULL))) {
        handle(key);
        RedisModule_FreeString(NULL, key);
    }
    RedisModule_DictIteratorStop(it);
    RedisModule_FreeDict(NULL, taken);
}

/* ---- what is lent ---------------------------------------------------------------------------- */

/* What somebody waits to write by now stays, and is told. */
static void take_back(RedisModuleString *key) {
    bool stays = !role_mirrors() && queued_holds(key);
    call_move(stays ? SERVE_MOVE_OUT_UNASKED : SERVE_MOVE_BACK_UNASKED, key);
}

/* Not in EXEC, where a script's commands come by as well. */
static void take_back_lent(RedisModuleCtx *ctx) {
    (void)ctx;
    bool within = RedisModule_GetContextFlags(NULL) & REDISMODULE_CTX_FLAGS_MULTI;
    if (within || pause_holds() || transactions_held_back()) return;
    each_of(&lent, take_back);
    if (!lent) loop_set(LOOP_LENT, NULL);
    given_back = true;
}

static void age_recent(void) {
    uint64_t now_us = clock_monotonic_us();
    if (now_us - recent_us < RECENT_US) return;
    recent_us = now_us;
    if (older) RedisModule_FreeDict(NULL, older);
    older = recent;
    recent = NULL;
}

static void lend(RedisModuleString *key) {
    add(&lent, key);
    loop_set(LOOP_LENT, take_back_lent);
    if (RedisModule_CommandFilterGetClientId) return;
    age_recent();
    if (!recent || RedisModule_DictSize(recent) < RECENT_MAX) add(&recent, key);
}

/* ---- what leaves in a pause ------------------------------------------------------------------ */

/* A primary that has become a replica meanwhile tells nobody any more: what it has is what the new
 * one has. */
static void tell(RedisModuleString *key) {
    call_move(role_mirrors() ? SERVE_MOVE_BACK_UNASKED : SERVE_MOVE_OUT_UNASKED, key);
}

static void tell_untold(void) {
    each_of(&untold, tell);
}

static void move_out_in_pause(RedisModuleString *key) {
    if (!untold) pause_at_end(tell_untold);
    add(&untold, key);
    for (int db = 0; db < maps_dbs(); db++) {
        RedisModule_SelectDb(ckv.ctx, db);
        move_out(ckv.ctx, key, MOVE_ANY);
    }
}

/* ---- leaving --------------------------------------------------------------------------------- */

static leave_how how;

bool leave_if(RedisModuleString *key, move_kind kind) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    if (!move_any_record(text, len, kind)) return false;
    if (how.will_run && !how.will_run()) return false;
    bool told = aof_form_own(ckv.ctx) || places_layout() == PLACES_SLOTS;
    if (told && pause_holds())
        move_out_in_pause(key);
    else
        call_move(SERVE_MOVE_OUT_UNASKED, key);
    if (role_mirrors()) lend(key);
    return true;
}

leave_how leave_begin(leave_how next) {
    leave_how before = how;
    how = next;
    return before;
}

/* The server may put the text of a key elsewhere while it moves. */
void leave_key(RedisModuleString *key) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    prefix_state state = prefixes_match(text, len);
    if (state == PREFIX_NONE) return;
    if (how.runs_later) queued_note(how.client, text, len);
    bool left = leave_if(key, MOVE_ALL) || how.leaves_strings;
    if (state != PREFIX_SERVING || (!left && !pause_holds())) return;
    text = RedisModule_StringPtrLen(key, &len);
    aside_note(text, len);
}

/* ---- EXEC on a replica ----------------------------------------------------------------------- */

static RedisModuleDict *wanted; /* by EXEC; NULL: none */

static void want(const char *key, size_t len) {
    if (!wanted) wanted = RedisModule_CreateDict(NULL);
    RedisModule_DictSetC(wanted, (void *)key, len, NULL);
}

static void want_all(RedisModuleDict *names) {
    if (!names) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(names, "^", NULL, 0);
    const char *key;
    size_t len;
    while ((key = RedisModule_DictNextC(it, &len, NULL))) want(key, len);
    RedisModule_DictIteratorStop(it);
}

/* All names first: who is told of a move may call commands, whose names are remembered. */
static void leave_wanted(void (*leave)(RedisModuleString *key)) {
    leave_how before = leave_begin((leave_how){.runs_later = false});
    each_of(&wanted, leave);
    leave_begin(before);
}

static uint64_t executing; /* the client whose EXEC has come */

/* The transaction is the last to need it. */
static void leave_to_exec(RedisModuleString *key) {
    size_t len;
    leave_key(key);
    const char *text = RedisModule_StringPtrLen(key, &len);
    queued_forget(executing, text, len);
}

/* What the primary's commands need has left by a command of its own. */
static bool is_primary(uint64_t client) {
    RedisModuleString *name = RedisModule_GetClientUserNameById(ckv.ctx, client);
    if (name) RedisModule_FreeString(ckv.ctx, name);
    return !name;
}

void leave_queued(uint64_t client) {
    if (!role_mirrors()) return;
    if (client == QUEUED_ANYBODY) {
        age_recent();
        want_all(recent);
        want_all(older);
        leave_wanted(leave_key);
    } else if (!is_primary(client)) {
        queued_each(client, want);
        executing = client;
        leave_wanted(leave_to_exec);
    }
}

/* ---- before a command ------------------------------------------------------------------------ */

void leave_settle(void) {
    tell_untold();
    if (lent) take_back_lent(ckv.ctx);
    if (!given_back || role_mirrors()) return;
    given_back = false;
    queued_each(QUEUED_ANYBODY, want);
    leave_wanted(leave_key);
}
