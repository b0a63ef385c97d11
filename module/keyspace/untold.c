/* untold.c: see untold.h. */
#include "keyspace/untold.h"

#include "keyspace/maps.h"
#include "keyspace/move.h"
#include "keyspace/move_call.h"
#include "keyspace/numbered_names.h"
#include "keyspace/places.h"
#include "keyspace/replicate.h"
#include "server/names.h"
#include "server/pause.h"
#include "server/role.h"
#include "server/timer.h"
#include "server/within.h"

/* By database, and those of slots that were arriving. NULL: none. */
static RedisModuleDict *untold, *arriving;
static uint64_t unhidden; /* when all that are arriving were still hidden */

bool untold_arrives(const RedisModuleString *key) {
    return places_are_slots() && maps_hidden(places_of_string(key)) && !role_follows(ckv.ctx);
}

static bool exec_was_paused; /* before the EXEC that came last */

void untold_exec(void) {
    exec_was_paused = pause_holds();
}

bool untold_may_tell(void) {
    return !pause_holds() || (within_exec() && !exec_was_paused);
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
    bool arrived = arriving && unhidden != maps_unhidden() && !untold_arrives(key);
    for (int db = 0; (untold || arrived) && untold_may_tell() && db < maps_dbs(); db++)
        if (numbered_has(untold, (uint64_t)db, key) ||
            (arrived && numbered_has(arriving, (uint64_t)db, key)))
            tell((uint64_t)db, key);
}

void untold_tell_all(void) {
    numbered_each(&untold, tell);
}

/* ---- what has moved out while its slot arrived ----------------------------------------------- */

#define STEP_MS 10

static timer steps;

static void tell_if_arrived(uint64_t db, RedisModuleString *key) {
    if (untold_arrives(key))
        numbered_add(&arriving, db, key);
    else
        tell(db, key);
}

/* No command is under way: what is told now is not dropped. A replica is told by its primary. */
static void step(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    if (role_follows(ctx)) {
        names_free(&arriving);
    } else if (unhidden != maps_unhidden() && !pause_holds()) {
        unhidden = maps_unhidden();
        numbered_each(&arriving, tell_if_arrived);
    }
    if (arriving) timer_set(ctx, &steps, STEP_MS);
}

static void note_arriving(uint64_t db, const RedisModuleString *key) {
    if (!arriving) {
        unhidden = maps_unhidden();
        timer_set(ckv.ctx, &steps, STEP_MS);
    }
    numbered_add(&arriving, db, key);
}

static void take_back(uint64_t db, RedisModuleString *key) {
    RedisModule_SelectDb(ckv.ctx, (int)db);
    move_back(ckv.ctx, key, NULL);
}

/* A primary that a replica of its own takes over from has what that one has: of these, records. */
static void on_role(bool follows) {
    if (follows) numbered_each(&arriving, take_back);
}

/* ---- what is noted --------------------------------------------------------------------------- */

void untold_start(RedisModuleCtx *ctx) {
    timer_register(ctx, &steps, step);
    role_listen(on_role);
}

void untold_note(uint64_t db, const RedisModuleString *key) {
    if (untold_arrives(key)) {
        note_arriving(db, key);
        return;
    }
    pause_at_end();
    numbered_add(&untold, db, key);
}
