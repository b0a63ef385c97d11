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
#include "transparent/serve_key.h"

/* Keys that moved out while a pause of all writes kept the AOF and replicas as they are. These are
 * told when that is over, before anything else. NULL: none. */
static RedisModuleDict *untold;

/* In every database. As a command of its own, which may tell an AOF: what a filter replicates goes
 * nowhere. */
static void call_move_out(RedisModuleString *key) {
    bool trusted = acl_trust(true);
    for (int db = 0; db < maps_dbs(); db++) {
        RedisModule_SelectDb(ckv.ctx, db);
        RedisModuleCallReply *reply = own_call(ckv.ctx, SERVE_MOVE_OUT_UNASKED, "!s", key);
        if (reply) RedisModule_FreeCallReply(reply);
    }
    acl_trust(trusted);
}

void leave_tell_untold(void) {
    RedisModuleDict *telling = untold;
    if (!telling) return;
    untold = NULL; /* who is told of a move may call commands, and so come by here again */
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(telling, "^", NULL, 0);
    RedisModuleString *key;
    while ((key = RedisModule_DictNext(NULL, it, NULL))) {
        call_move_out(key);
        RedisModule_FreeString(NULL, key);
    }
    RedisModule_DictIteratorStop(it);
    RedisModule_FreeDict(NULL, telling);
}

static void move_out_in_pause(RedisModuleString *key) {
    if (!untold) {
        untold = RedisModule_CreateDict(NULL);
        pause_at_end(leave_tell_untold);
    }
    RedisModule_DictSet(untold, key, NULL);
    for (int db = 0; db < maps_dbs(); db++) {
        RedisModule_SelectDb(ckv.ctx, db);
        move_out(ckv.ctx, key, MOVE_ANY);
    }
}

bool leave_if(RedisModuleString *key, move_kind kind) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    if (!move_any_record(text, len, kind)) return false;
    bool told = aof_form_own(ckv.ctx) || places_layout() == PLACES_SLOTS;
    if (told && pause_holds())
        move_out_in_pause(key);
    else
        call_move_out(key);
    return true;
}

static leave_how how;

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
