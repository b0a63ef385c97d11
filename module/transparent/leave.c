/* leave.c: see leave.h. */
#include "transparent/leave.h"

#include "keyspace/aof_form.h"
#include "keyspace/aside.h"
#include "keyspace/followed.h"
#include "keyspace/maps.h"
#include "keyspace/move_call.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/queued.h"
#include "keyspace/replicate.h"
#include "keyspace/tryagain.h"
#include "keyspace/untold.h"
#include "server/pause.h"
#include "server/role.h"
#include "server/version.h"
#include "transparent/lent.h"

/* Keys that moved out while a pause of all writes kept the AOF and replicas as they are, or came
 * back. They are told when that is over, before anything else. NULL: none. */
static struct { RedisModuleDict *out, *back; } in_pause;
/* In the pause a command came that is about a map, and is held back, perhaps: when it runs, nothing
 * is to be lent. */
static bool map_named;

/* A primary that has become a replica meanwhile lends it; and a replica may be a primary before it
 * has come back, and its AOF has to know that it is out. */
static void tell_out(uint64_t db, RedisModuleString *key) {
    move_call(MOVE_CALL_OUT, db, key);
    lent_note(db, key);
}

/* If it has not moved out again since. */
static void tell_back(uint64_t db, RedisModuleString *key) {
    if (move_db_of_record(key, MOVE_ALL, (int)db) == (int)db) move_call(MOVE_CALL_BACK, db, key);
}

static void move_back_in_pause(uint64_t db, RedisModuleString *key) {
    numbered_add(&in_pause.back, db, key);
    RedisModule_SelectDb(ckv.ctx, (int)db);
    move_back(ckv.ctx, key, NULL);
}

bool leave_untold(void) {
    return in_pause.out || in_pause.back || untold_any() || map_named || followed_owes();
}

/* A file that is loaded meanwhile brings other data, of which nothing is to move before all of it
 * is there. */
static void tell_untold(void) {
    if (!leave_untold() || role_loads(ckv.ctx)) return;
    followed_tell();
    numbered_each(&in_pause.back, tell_back);
    numbered_each(&in_pause.out, tell_out);
    untold_tell_all();
    if (map_named) lent_before_map(move_back_in_pause);
    map_named = false;
}

static void tell_later(RedisModuleDict **keys, uint64_t db, const RedisModuleString *key) {
    pause_at_end();
    numbered_add(keys, db, key);
}

/* What is replicated within an event comes before the command that it is of. That may be one of
 * which nobody is told: who has to know for certain is told once more, between commands. */
static void tell_in_event(uint64_t db, RedisModuleString *key) {
    RedisModule_SelectDb(ckv.ctx, (int)db);
    if (move_db_of_record(key, MOVE_ALL, (int)db) != (int)db) replicate_moved_out(ckv.ctx, key);
    lent_note(db, key);
    untold_note(db, key);
}

static int on_event(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *key) {
    (void)ctx, (void)type, (void)event, (void)key;
    if (in_pause.out && untold_may_tell() && !role_loads(ckv.ctx))
        numbered_each(&in_pause.out, tell_in_event);
    return REDISMODULE_OK;
}

/* Where a pause ends right before what it has held back runs, nobody can be told in between
 * (server/pause.h), but with the first of these commands: where Redis gives up a slot's hand-off
 * that takes too long, and behind a command that a thread of Valkey's has read. Events are listened
 * to from then on: a server that may be telling one must not be asked to end it. */
static void listen_to_events(void) {
    static bool listening;
    if (!listening && !version_is_7_0())
        RedisModule_SubscribeToKeyspaceEvents(ckv.ctx, REDISMODULE_NOTIFY_ALL, on_event);
    listening = true;
}

static void move_out_in_pause(uint64_t db, RedisModuleString *key) {
    listen_to_events();
    tell_later(&in_pause.out, db, key);
    RedisModule_SelectDb(ckv.ctx, (int)db);
    move_out(ckv.ctx, key, MOVE_ANY);
}

static leave_how how;

static void leave_db(uint64_t db, RedisModuleString *key) {
    bool told = aof_form_own(ckv.ctx) || places_are_slots();
    if (told && !untold_may_tell()) {
        move_out_in_pause(db, key);
    } else {
        move_call(MOVE_CALL_OUT, db, key);
        if (told && ((how.is_called && how.is_called()) || untold_arrives(key)))
            untold_note(db, key);
    }
    lent_note(db, key);
}

/* A database that has a record of that name, from one on, that the command may be about; -1: none
 * has. */
static int next_db(RedisModuleString *key, move_kind kind, int from) {
    int db = move_db_of_record(key, kind, from), only = -1;
    if (db >= 0 && how.only_db) only = how.only_db();
    if (only < 0 || db < 0) return db;
    if (only < from) return -1;
    return move_db_of_record(key, kind, only) == only ? only : -1;
}

static void await(RedisModuleString *key) {
    if (!how.awaits)
        how.awaits = RedisModule_CreateStringFromString(NULL, key);
    else if (places_of_string(how.awaits) != places_of_string(key))
        how.crosses = true;
}

bool leave_if(RedisModuleString *key, move_kind kind) {
    int db = next_db(key, kind, 0);
    bool there = db >= 0, queued = how.runs_later && lent_may_queue(how.client);
    if ((!there && !queued) || (how.will_run && !how.will_run())) return false;
    if (how.defers) {
        await(key);
        return false;
    }
    if (queued && lent_to_queued(how.client, key, there)) return false;
    for (; db >= 0; db = next_db(key, kind, db + 1)) leave_db((uint64_t)db, key);
    return there;
}

leave_how leave_begin(leave_how next) {
    leave_how before = how;
    how = next;
    return before;
}

/* How many maps had arrived when a name was noted while no other was. */
static uint64_t noted_at;

static void note_name(const char *name, size_t len) {
    if (!queued_any()) noted_at = maps_arrivals();
    queued_note(how.client, name, len);
}

/* Whether the record of a key that has none may be on its way from another node of the cluster. */
static bool is_on_its_way(RedisModuleString *key) {
    uint32_t place = places_of_string(key);
    int db = how.db();
    RedisModule_SelectDb(ckv.ctx, db);
    return !maps_at(db, place) && !native_exists(ckv.ctx, key) &&
           tryagain_may_be_elsewhere(ckv.ctx, db, place);
}

/* What comes with a slot that arrives by atomic migration waits for nothing. */
static bool awaits(RedisModuleString *key) {
    if (!places_are_slots() || !how.waits || role_follows(ckv.ctx)) return false;
    return how.waits() && !untold_arrives(key) && is_on_its_way(key);
}

bool leave_tells_open(RedisModuleString *key, bool *open) {
    if (prefixes_match_name(key) == PREFIX_NONE) return false;
    int db = move_db_of_record(key, MOVE_ALL, 0);
    *open = db >= 0 && !untold_arrives(key) && tryagain_is_open(ckv.ctx, db, key);
    return db >= 0;
}

/* The server may put the text of a key elsewhere while it moves. */
void leave_key(RedisModuleString *key) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    prefix_state state = prefixes_match(text, len);
    if (state == PREFIX_NONE) return;
    if (how.runs_later) note_name(text, len);
    if (how.defers && untold_any()) await(key);
    if (!how.reads && !how.defers) untold_tell(key);
    bool moved = leave_if(key, MOVE_ALL), left = moved || how.leaves_strings;
    if (!moved && !how.awaits && awaits(key)) await(key);
    if (state == PREFIX_SERVING && (left || pause_holds())) aside_note(key);
}

/* For a command that is there already and runs now. Of an EXEC that comes while a file is loaded
 * the server runs nothing that has to do with keys. */
static void leave_now(uint64_t client, RedisModuleString *key) {
    (void)client;
    if (role_loads(ckv.ctx)) return;
    leave_how before = leave_begin((leave_how){.runs_later = false});
    leave_key(key);
    leave_begin(before);
}

/* ---- what is watched while a file is loaded -------------------------------------------------- */

/* NULL: none. Where the server does not tell who sends, anybody may: so many bytes are kept. */
static RedisModuleDict *watched;
static size_t watched_bytes;
#define WATCHED_BYTES_MAX (1 << 20)
#define NAME_BYTES        64 /* that one takes besides */

void leave_when_loaded(const RedisModuleString *key) {
    size_t len;
    RedisModule_StringPtrLen(key, &len);
    watched_bytes += NAME_BYTES + len;
    if (watched_bytes <= WATCHED_BYTES_MAX) numbered_add(&watched, QUEUED_ANYBODY, key);
}

static void leave_for_watcher(uint64_t anybody, RedisModuleString *key) {
    (void)anybody;
    if (prefixes_match_name(key) == PREFIX_NONE) return;
    aside_keep(key);
    leave_if(key, MOVE_EXPIRING);
}

static void leave_for_watchers(void) {
    leave_how before = leave_begin((leave_how){.runs_later = false});
    watched_bytes = 0;
    numbered_each(&watched, leave_for_watcher);
    leave_begin(before);
}

/* ---- what is queued when records arrive ------------------------------------------------------ */

/* Those of the names that records have arrived of. NULL: none. */
static RedisModuleDict *arrived;

static void note_arrived(const char *name, size_t len) {
    if (!move_any_record(name, len, MOVE_ALL)) return;
    RedisModuleString *key = RedisModule_CreateString(NULL, name, len);
    numbered_add(&arrived, QUEUED_ANYBODY, key);
    RedisModule_FreeString(NULL, key);
}

/* Of names that a client has noted. */
static void leave_arrived(uint64_t client) {
    queued_each(client, note_arrived);
    numbered_each(&arrived, leave_now);
}

/* Of those whose EXEC is not told from others' the names may be a million: they are gone through
 * behind a file, and not behind each map that arrives by itself, as one after the other does where
 * slots move. */
void leave_loaded(void) {
    static uint64_t loadings, arrivals;
    bool any = watched_bytes || arrivals != maps_arrivals();
    if (!any || role_loads(ckv.ctx)) return;
    if (watched_bytes) leave_for_watchers();
    bool file = loadings != ckv.loadings;
    loadings = ckv.loadings;
    arrivals = maps_arrivals();
    if (file && !role_mirrors()) leave_arrived(QUEUED_ANYBODY);
}

/* ---- transactions, and between commands ------------------------------------------------------ */

void leave_queued(uint64_t client) {
    lent_to_exec(client, leave_now);
    bool may = client != QUEUED_ANYBODY && !role_mirrors();
    if (may && noted_at != maps_arrivals()) leave_arrived(client);
}

void leave_before_map(void) {
    if (pause_holds()) {
        map_named = true;
        pause_at_end();
    }
    lent_before_map(move_back_in_pause);
}

void leave_catch_up(void) {
    tell_untold();
    lent_catch_up(leave_now);
}

void leave_start(RedisModuleCtx *ctx) {
    pause_listen(tell_untold);
    untold_start(ctx);
    followed_start();
}
