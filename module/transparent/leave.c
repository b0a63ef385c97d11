/* leave.c: see leave.h. */
#include "transparent/leave.h"

#include "keyspace/aof_form.h"
#include "keyspace/aside.h"
#include "keyspace/maps.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/queued.h"
#include "server/acl.h"
#include "server/own_call.h"
#include "server/pause.h"
#include "server/role.h"
#include "transparent/serve_key.h"
#include "transparent/transactions.h"

/* Keys that moved out while a pause of all writes kept the AOF and replicas as they are. These are
 * told when that is over, before anything else. NULL: none. */
static RedisModuleDict *untold;

/* Keys that moved out for clients of this replica, in a cluster. Its primary knows nothing of that,
 * and when their slot leaves tells it to delete the map. So they come back before the next command.
 * NULL: none. */
static RedisModuleDict *lent;

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

static void tell(RedisModuleString *key) {
    call_move(SERVE_MOVE_OUT_UNASKED, key);
}

static void tell_untold(void) {
    each_of(&untold, tell);
}

static void take_back(RedisModuleString *key) {
    call_move(SERVE_MOVE_BACK_UNASKED, key);
}

void leave_settle(void) {
    tell_untold();
    if (!transactions_held_back()) each_of(&lent, take_back);
}

static void move_out_in_pause(RedisModuleString *key) {
    if (!untold) pause_at_end(tell_untold);
    add(&untold, key);
    for (int db = 0; db < maps_dbs(); db++) {
        RedisModule_SelectDb(ckv.ctx, db);
        move_out(ckv.ctx, key, MOVE_ANY);
    }
}

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
    if (role_mirrors()) add(&lent, key);
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
    if (how.runs_later) queued_note(text, len);
    bool left = leave_if(key, MOVE_ALL) || how.leaves_strings;
    if (state != PREFIX_SERVING || (!left && !pause_holds())) return;
    text = RedisModule_StringPtrLen(key, &len);
    aside_note(text, len);
}

static RedisModuleDict *wanted; /* by EXEC; NULL: none */

static void want(const char *key, size_t len) {
    if (!wanted) wanted = RedisModule_CreateDict(NULL);
    RedisModule_DictSetC(wanted, (void *)key, len, NULL);
}

/* All names first: who is told of a move may call commands, whose names are remembered. */
void leave_queued(void) {
    if (!role_mirrors()) return;
    leave_how before = leave_begin((leave_how){.runs_later = false});
    queued_each(want);
    each_of(&wanted, leave_key);
    leave_begin(before);
}
