/* untold.c: see untold.h. */
#include "keyspace/untold.h"

#include "keyspace/maps.h"
#include "keyspace/move.h"
#include "keyspace/move_calls.h"
#include "keyspace/places.h"
#include "keyspace/replicate.h"
#include "server/pause.h"
#include "server/role.h"

static pause_end *tell_when_over;

/* By database, and those of slots that were arriving. NULL: none. */
static RedisModuleDict *untold, *arriving;

void untold_start(pause_end *teller) {
    tell_when_over = teller;
}

bool untold_arrives(const RedisModuleString *key) {
    return places_layout() == PLACES_SLOTS && maps_hidden(places_of_string(key)) &&
           !role_follows(ckv.ctx);
}

void untold_note(uint64_t db, const RedisModuleString *key) {
    pause_at_end(tell_when_over);
    move_calls_add(untold_arrives(key) ? &arriving : &untold, db, key);
}

static bool exec_was_paused; /* before the EXEC that came last */

void untold_exec(void) {
    exec_was_paused = pause_holds();
}

bool untold_may_tell(void) {
    bool within = RedisModule_GetContextFlags(NULL) & REDISMODULE_CTX_FLAGS_MULTI;
    return !pause_holds() || (within && !exec_was_paused);
}

void untold_moved_out(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (untold_may_tell()) replicate_moved_out(ctx, key);
    if (!untold_may_tell() || role_is_called(ctx) || untold_arrives(key))
        untold_note((uint64_t)RedisModule_GetSelectedDb(ctx), key);
}

bool untold_any(void) {
    return untold != NULL;
}

/* If it has not come back since. */
static void tell(uint64_t db, RedisModuleString *key) {
    if (move_db_of_record(key, MOVE_ALL, (int)db) != (int)db) move_call(MOVE_CALL_OUT, db, key);
}

void untold_tell(RedisModuleString *key) {
    for (int db = 0; untold && untold_may_tell() && db < maps_dbs(); db++)
        if (move_calls_has(untold, (uint64_t)db, key)) tell((uint64_t)db, key);
}

void untold_tell_all(void) {
    move_calls_each(&untold, tell);
}

static void tell_if_arrived(uint64_t db, RedisModuleString *key) {
    if (untold_arrives(key))
        untold_note(db, key);
    else
        tell(db, key);
}

void untold_tell_arrived(void) {
    move_calls_each(&arriving, tell_if_arrived);
}
