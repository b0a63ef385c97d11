/* mover.c: strings move to where they belong. See mover.h. */
#include "background/mover.h"

#include "background/walk.h"
#include "keyspace/aside.h"
#include "keyspace/followed.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "keyspace/move.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/queued.h"
#include "keyspace/replicate.h"
#include "keyspace/string_bytes.h"
#include "keyspace/tryagain.h"
#include "server/busy.h"
#include "server/child.h"
#include "server/clock.h"
#include "server/pause.h"
#include "server/role.h"
#include "server/settings.h"
#include "server/timer.h"

#include <string.h>

#define REST_MS      100
#define BUSY_MS      2 /* between slices, while clients are busy, */
#define IDLE_MS      1
#define SLICE_US     1000
#define SAVED_UP_US  10000 /* time that passes without a slice: more of it is not made up for */
#define IDLE_PERCENT 50

#define SETTLE_US   1000000    /* after a pause, until all that it held back has run */
#define AGAIN_US    60000000   /* until what could not move out is tried again */
#define LOST_US     3600000000 /* between walks because of names that were forgotten */
#define FREE_SHARE  0.02       /* of ckv.maxmemory: with less, nothing more moves in */
#define STOP_ROOM   (64 << 10) /* bytes: with less, nothing more moves out, */
#define RESUME_ROOM (1 << 20)  /* and goes on with so much */
#define EARLY_TRIES 4          /* where room is made, at a time */

/* How long a long value waits for room to be young, and for how long others then do not. */
#define PATIENCE_US   1000000
#define IMPATIENCE_US 60000000

/* How long it is believed that a cluster is down, or is not: to ask each time would take what a
 * walk may take. */
#define DOWN_US    100000
#define NAME_SHOWN 128 /* bytes of a key's name in the log */

/* What goes one way. */
typedef struct job {
    bool wanted; /* a walk is to begin */
    bool working;
    bool carried_all;      /* records are out, all of them */
    bool told_of_two;      /* the log has a key of which there are two values */
    const char *waits_for; /* NULL: for nothing */
    walk walk;
    uint64_t moved, left, began_us, ended_us;
    int64_t saved_bytes;
    uint64_t changes;  /* of prefixes that it knows of */
    uint64_t arrivals; /* of maps, when it began */
    uint64_t full_us;  /* when there was no room for a long value first; 0: there is */
    char *prefix;      /* of CKV MOVE; NULL: none */
} job;

static struct {
    timer slices;
    job jobs[MOVER_WAYS];
    uint64_t last_us, paused_us;
    double allowance_us; /* to be spent in slices */
} mover;

static const prefix_state moves[] = {[MOVER_IN] = PREFIX_SERVING, [MOVER_OUT] = PREFIX_LEAVING};
static const char *const way_names[] = {"into ckv", "out of ckv"};

/* ---- what belongs where ---------------------------------------------------------------------- */

static bool named(const job *j, const char *key, size_t len) {
    return j->prefix && prefixes_begins(j->prefix, key, len);
}

static bool belongs_in(const char *key, size_t len) {
    prefix_state state = prefixes_match(key, len);
    return state == PREFIX_SERVING ||
           (state == PREFIX_NONE && named(&mover.jobs[MOVER_IN], key, len));
}

static bool belongs_out(const char *key, size_t len) {
    prefix_state state = prefixes_match(key, len);
    return state == PREFIX_LEAVING ||
           (state == PREFIX_NONE && named(&mover.jobs[MOVER_OUT], key, len));
}

/* Whether the records of a key's slot are here, and no map of theirs on its way. */
static bool has_arrived(RedisModuleCtx *ctx, const char *key, size_t len) {
    int db = RedisModule_GetSelectedDb(ctx);
    uint32_t place = places_of_key(key, len);
    return maps_at(db, place) ? maps_served_at(db, place) != NULL
                              : !tryagain_may_be_elsewhere(ctx, db, place);
}

/* ---- one key --------------------------------------------------------------------------------- */

/* While data is imported a string that has expired is there for the source of the data alone, and
 * the server would delete it as it is opened to be moved. */
static bool is_kept_for_import(RedisModuleCtx *ctx, RedisModuleString *name) {
    return settings_import_mode() && native_has_expired(ctx, name);
}

static move_result put_aside(const RedisModuleString *name) {
    aside_keep(name);
    return MOVE_STAYS;
}

/* `early`: it is not due yet. What is long would be encoded anew for each piece that is changed. */
static move_result take_in(RedisModuleCtx *ctx, RedisModuleString *name, bool early,
                           int64_t *saved) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    if (is_kept_for_import(ctx, name)) return MOVE_NOTHING;
    if (queued_has(name) || !has_arrived(ctx, key, len)) return put_aside(name);
    if (early && native_is_long_string(ctx, name)) return put_aside(name);
    move_result result = move_in_if_smaller(ctx, name, saved);
    if (result == MOVE_DONE) replicate_moved_in(ctx, name);
    return result;
}

static move_result carry_out(RedisModuleCtx *ctx, RedisModuleString *name) {
    int64_t most = maxmemory_room() / 2;
    move_result result = move_out(ctx, name, most > 0 ? (size_t)most : 0);
    if (result == MOVE_DONE) replicate_moved_out(ctx, name);
    return result;
}

/* Once a walk. */
static void tell_of_two(job *j, const char *key, size_t len) {
    j->told_of_two = true;
    ckv_log("warning", "there is a record '%.*s' and a key of the server's own: both stay",
            (int)(len < NAME_SHOWN ? len : NAME_SHOWN), key);
}

/* Replicas may have had the prefix before, and made a record of what was written until then, or was
 * queued. What has a record here as well has one there. */
static void tell_left(RedisModuleCtx *ctx, RedisModuleString *name) {
    if (!move_has_record(ctx, name)) replicate_left(ctx, name);
}

/* Whether long values have waited in vain lately. */
static bool is_impatient(const job *j) {
    uint64_t waited_us = clock_monotonic_us() - j->full_us;
    return j->full_us && waited_us >= PATIENCE_US && waited_us < IMPATIENCE_US;
}

/* Whether a long value waits here for the encoders, or the walk goes on without it. */
static bool waits_for_room(job *j) {
    uint64_t now_us = clock_monotonic_us();
    if (!j->full_us || now_us - j->full_us >= IMPATIENCE_US) j->full_us = now_us;
    return !is_impatient(j);
}

/* False: it is this key's turn again when there is room. */
static bool move_key(RedisModuleCtx *ctx, mover_way way, RedisModuleString *name) {
    job *j = &mover.jobs[way];
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    if (!j->walk.wanted(key, len)) return true; /* any more */
    move_result result = way == MOVER_OUT  ? carry_out(ctx, name)
                         : aside_has(name) ? MOVE_STAYS
                                           : take_in(ctx, name, false, &j->saved_bytes);
    if (result == MOVE_LATER && waits_for_room(j)) return false;
    if (result == MOVE_DONE && !is_impatient(j)) j->full_us = 0;
    if (result == MOVE_LATER) result = put_aside(name);
    j->moved += result == MOVE_DONE;
    j->left += result == MOVE_STAYS || result == MOVE_TAKEN;
    if (way == MOVER_IN && result == MOVE_STAYS) tell_left(ctx, name);
    if (result == MOVE_TAKEN && !j->told_of_two) tell_of_two(j, key, len);
    return true;
}

/* A string whose time aside is over, or strings: of which databases nobody knows. */
static struct {
    RedisModuleString *name; /* NULL: none */
    int db;                  /* the next one */
} back;

/* Whether there is another database that has keys, which is selected then. */
static bool select_next(RedisModuleCtx *ctx) {
    while (RedisModule_SelectDb(ctx, back.db) == REDISMODULE_OK) {
        back.db++;
        if (RedisModule_DbSize(ctx) > 0) return true;
    }
    return false;
}

/* Whether what is aside is to come back before its time, as the server's limit is near. Where
 * something may go for it instead that is asked for when it is about to (mover_make_room). */
static bool is_early(void) {
    const maxmemory_settings *limit = maxmemory_now();
    return aside_any_early() && limit->wanted_limit > 0 && maxmemory_room() < 0 &&
           (!limit->evicts || places_are_slots());
}

/* In one database; `early`: also what is not due yet. False: there was none. */
static bool take_back(RedisModuleCtx *ctx, bool early) {
    size_t len;
    if (!back.name) back.name = early ? aside_next_early() : aside_next_due();
    if (!back.name) return false;
    const char *key = RedisModule_StringPtrLen(back.name, &len);
    if (belongs_in(key, len) && select_next(ctx)) {
        int64_t *saved = &mover.jobs[MOVER_IN].saved_bytes;
        if (take_in(ctx, back.name, early, saved) == MOVE_LATER) put_aside(back.name);
        return true;
    }
    RedisModule_FreeString(NULL, back.name);
    back.name = NULL;
    back.db = 0;
    return true;
}

/* ---- what keeps strings where they are ------------------------------------------------------- */

/* Of keys that a client's own replica holds nobody could tell whose they are; a replica in a
 * cluster is told by its primary. */
static bool follows_only(int flags) {
    bool replica = flags & REDISMODULE_CTX_FLAGS_SLAVE;
    return replica &&
           (flags & REDISMODULE_CTX_FLAGS_CLUSTER || !(flags & REDISMODULE_CTX_FLAGS_READONLY));
}

static const char the_primary[] = "the primary";

static const char *kept_by(RedisModuleCtx *ctx) {
    int flags = role_flags(ctx);
    uint64_t now_us = clock_monotonic_us();
    if (pause_holds()) mover.paused_us = now_us;
    if (role_loads_any(ctx)) return "a file that is loaded";
    if (mover.paused_us && now_us - mover.paused_us < SETTLE_US) return "a pause of writes";
    if (child_at_work()) return "a child that saves";
    return follows_only(flags) ? the_primary : NULL;
}

/* Whether records fill ckv.maxmemory so far that for others some would have to go. What is learned
 * takes its part of it in time. */
static bool is_own_limit_near(void) {
    long long quarter = ckv.config.maxmemory / 4, learned = 2 * ckv.config.dictionary_size;
    return maxmemory_own_excess(FREE_SHARE, (size_t)(quarter < learned ? quarter : learned)) > 0;
}

/* The same of one way. */
static const char *way_kept_by(mover_way way) {
    const job *j = &mover.jobs[way];
    if (way == MOVER_OUT)
        return maxmemory_room() < (j->waits_for ? RESUME_ROOM : STOP_ROOM) ? "maxmemory" : NULL;
    if (queued_unseen()) return "a transaction from before";
    return is_own_limit_near() ? "ckv.maxmemory" : NULL;
}

static void note_wait(mover_way way, const char *why) {
    job *j = &mover.jobs[way];
    if (why && why != j->waits_for && strstr(why, "maxmemory"))
        ckv_log("warning", "moving strings %s waits for memory (%s): %llu have moved",
                way_names[way], why, (unsigned long long)j->moved);
    j->waits_for = why;
}

/* Whether a walk is to begin: it was asked for, or a prefix has come to be in the state that makes
 * its strings move. */
static bool is_due(mover_way way) {
    const job *j = &mover.jobs[way];
    bool changed = prefixes_changes(moves[way]) != j->changes && prefixes_any_in(moves[way]);
    return j->wanted || changed;
}

/* Whether some walk can go on. */
static bool note_waits(const char *kept) {
    bool some = false;
    for (mover_way way = MOVER_IN; way < MOVER_WAYS; way++) {
        const job *j = &mover.jobs[way];
        if (j->working || is_due(way)) note_wait(way, kept ? kept : way_kept_by(way));
        some |= j->working && !j->waits_for;
    }
    return some;
}

/* ---- a walk ---------------------------------------------------------------------------------- */

static void begin(RedisModuleCtx *ctx, mover_way way) {
    job *j = &mover.jobs[way];
    walk_begin(&j->walk, ctx, way == MOVER_IN ? WALK_NATIVE_STRINGS : WALK_RECORDS,
               way == MOVER_IN ? belongs_in : belongs_out);
    j->wanted = false;
    j->working = true;
    j->carried_all = false;
    j->told_of_two = false;
    j->waits_for = NULL;
    j->moved = j->left = 0;
    j->saved_bytes = 0;
    j->full_us = 0;
    j->began_us = clock_monotonic_us();
    j->arrivals = maps_arrivals();
    j->changes = prefixes_changes(moves[way]);
    if (j->walk.keys > 0)
        ckv_log("notice", "moving strings %s: %llu keys to look at", way_names[way],
                (unsigned long long)j->walk.keys);
}

static void forget_prefix(job *j) {
    RedisModule_Free(j->prefix);
    j->prefix = NULL;
}

static void end(mover_way way) {
    job *j = &mover.jobs[way];
    walk_end(&j->walk);
    j->working = false;
    j->ended_us = clock_monotonic_us();
    if (j->walk.keys > 0)
        ckv_log("notice", "moved %llu strings %s in %.0f s, %llu stay where they are",
                (unsigned long long)j->moved, way_names[way],
                (double)(j->ended_us - j->began_us) / 1e6, (unsigned long long)j->left);
    if (way == MOVER_OUT && maps_arrivals() != j->arrivals) {
        j->wanted = true; /* they may have come behind the walk */
        return;
    }
    j->carried_all = way == MOVER_OUT && j->left == 0;
    forget_prefix(j);
}

/* Goes on until a time. */
static void go_on(RedisModuleCtx *ctx, mover_way way, uint64_t until_us) {
    job *j = &mover.jobs[way];
    RedisModuleString *name;
    while (j->working && !j->waits_for && clock_monotonic_us() < until_us) {
        walk_answer answer = walk_step(&j->walk, ctx, &name);
        if (answer == WALK_END) {
            end(way);
            return;
        }
        if (answer == WALK_NO_KEY) continue;
        if (!move_key(ctx, way, name)) {
            walk_again(&j->walk);
            note_wait(way, "ckv.young-memory");
            return;
        }
        RedisModule_FreeString(NULL, name);
        note_wait(way, way_kept_by(way));
    }
}

/* ---- what there is to do --------------------------------------------------------------------- */

static bool is_again_due(mover_way way, uint64_t since_us) {
    const job *j = &mover.jobs[way];
    return !j->working && clock_monotonic_us() - j->ended_us >= since_us;
}

/* Whether there is no record under a prefix that is leaving. Even where there is none at all a walk
 * has ended first: who asks how far it is finds it done. */
static bool is_all_out(void) {
    const job *out = &mover.jobs[MOVER_OUT];
    if (is_due(MOVER_OUT)) return false;
    return (out->carried_all && maps_arrivals() == out->arrivals) || !maps_any();
}

static bool has_work(void) {
    bool any = false;
    for (mover_way way = MOVER_IN; way < MOVER_WAYS; way++)
        any |= mover.jobs[way].working || is_due(way);
    return any;
}

static void look_for_work(RedisModuleCtx *ctx) {
    job *in = &mover.jobs[MOVER_IN], *out = &mover.jobs[MOVER_OUT];
    if (is_all_out()) prefixes_forget_leaving();
    if (prefixes_any_in(PREFIX_SERVING) && is_again_due(MOVER_IN, LOST_US))
        in->wanted |= aside_has_lost();
    if (prefixes_any_in(PREFIX_LEAVING) && !is_all_out() && is_again_due(MOVER_OUT, AGAIN_US))
        out->wanted = true;
    for (mover_way way = MOVER_IN; way < MOVER_WAYS; way++) {
        job *j = &mover.jobs[way];
        if (j->prefix && role_follows(ctx)) forget_prefix(j);
        if (is_due(way)) begin(ctx, way);
    }
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void earn(uint64_t now_us, unsigned percent) {
    uint64_t passed_us = now_us - mover.last_us;
    if (passed_us > SAVED_UP_US) passed_us = SAVED_UP_US;
    mover.allowance_us += (double)passed_us * percent / 100;
    if (mover.allowance_us > SLICE_US) mover.allowance_us = SLICE_US;
    mover.last_us = now_us;
}

/* False: there was nothing to take back. */
static bool take_slice(RedisModuleCtx *ctx, uint64_t until_us, bool early) {
    bool some = false;
    while (clock_monotonic_us() < until_us && !way_kept_by(MOVER_IN) && take_back(ctx, early))
        some = true;
    go_on(ctx, MOVER_IN, until_us);
    go_on(ctx, MOVER_OUT, until_us);
    return some;
}

static void tick(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    uint64_t began_us = clock_thread_us(), now_us = clock_monotonic_us();
    followed_tell();
    const char *kept = kept_by(ctx);
    if (!kept && has_work() && tryagain_is_down(DOWN_US)) kept = "a cluster that is down";
    if (!kept) look_for_work(ctx);
    if (kept == the_primary && !maps_any()) prefixes_forget_leaving(); /* it has carried all out */
    bool early = is_early(), some = note_waits(kept);
    bool busy = (!some || busy_clients(ctx)) && !early;
    unsigned percent = (unsigned)ckv.config.move_cpu;
    earn(now_us, busy || percent > IDLE_PERCENT ? percent : IDLE_PERCENT);
    string_bytes_by_timer(true);
    if (!kept && mover.allowance_us > 0)
        some |= take_slice(ctx, now_us + (uint64_t)mover.allowance_us, early);
    string_bytes_by_timer(false);
    uint64_t took_us = clock_thread_us() - began_us;
    mover.allowance_us -= (double)took_us;
    if (took_us > ckv.stats.longest_slice_us) ckv.stats.longest_slice_us = took_us;
    timer_set(ctx, &mover.slices, !some ? REST_MS : busy ? BUSY_MS : IDLE_MS);
}

void mover_start(RedisModuleCtx *ctx) {
    timer_register(ctx, &mover.slices, tick);
    timer_set(ctx, &mover.slices, REST_MS);
}

/* ---- for others ------------------------------------------------------------------------------ */

size_t mover_make_room(RedisModuleCtx *ctx) {
    const int64_t *saved = &mover.jobs[MOVER_IN].saved_bytes;
    int64_t before = *saved;
    if (!aside_any_early() || places_are_slots() || kept_by(ctx) || way_kept_by(MOVER_IN)) return 0;
    for (int i = 0; i < EARLY_TRIES && take_back(ctx, true); i++) continue;
    return *saved > before ? (size_t)(*saved - before) : 0;
}

void mover_begin_anew(void) {
    job *in = &mover.jobs[MOVER_IN], *out = &mover.jobs[MOVER_OUT];
    in->wanted |= in->working || prefixes_any_in(PREFIX_SERVING);
    out->wanted |= out->working || prefixes_any_in(PREFIX_LEAVING);
}

const char *mover_move(mover_way way, const char *prefix, size_t len) {
    const char *error = prefixes_refuse(prefix, len);
    if (error) return error;
    if (len == 1 && *prefix == '*') len = 0;
    switch (prefixes_match(prefix, len)) {
    case PREFIX_SERVING:
        return "the prefix is in ckv.prefixes, which says where its strings are";
    case PREFIX_LEAVING:
        return "the prefix was in ckv.prefixes: its strings are moving out";
    case PREFIX_NONE:
        break;
    }
    job *j = &mover.jobs[way], *other = &mover.jobs[!way];
    if (j->prefix || (other->prefix && strcmp(other->prefix, prefix)))
        return "strings are moving already, see CKV MOVING";
    forget_prefix(other); /* the way back */
    j->prefix = RedisModule_Strdup(prefix);
    j->wanted = true;
    return NULL;
}

static double seconds_of(const job *j) {
    uint64_t until_us = j->working ? clock_monotonic_us() : j->ended_us;
    return j->began_us ? (double)(until_us - j->began_us) / 1e6 : 0;
}

mover_progress mover_progress_of(mover_way way) {
    const job *j = &mover.jobs[way];
    bool going = j->working || is_due(way);
    const char *waits_for = going && j->waits_for ? j->waits_for : "";
    mover_progress p = {
        .state = *waits_for    ? "waiting"
                 : going       ? "working"
                 : j->began_us ? "done"
                               : "none",
        .waits_for = waits_for,
        .prefix = j->prefix ? j->prefix : "",
        .keys = j->walk.keys,
        .looked_at = j->walk.looked_at,
        .moved = j->moved,
        .left = j->left,
        .saved_bytes = j->saved_bytes,
        .seconds = seconds_of(j),
    };
    /* Keys come and go while it walks. */
    if (!j->working || p.keys < p.looked_at) p.keys = p.looked_at;
    if (p.looked_at > 0)
        p.seconds_left = p.seconds * (double)(p.keys - p.looked_at) / (double)p.looked_at;
    return p;
}
