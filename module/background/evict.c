/* evict.c: making room. See evict.h. */
#include "background/evict.h"

#include "background/evict_commands.h"
#include "background/room.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "keyspace/removals.h"
#include "server/clock.h"
#include "server/feed.h"
#include "server/filter.h"
#include "server/own_call.h"
#include "server/pause.h"
#include "server/role.h"
#include "server/server_info.h"
#include "server/settings.h"
#include "server/version.h"
#include "server/within.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Of a limit, see evict.h. */
#define FREE_AT_ONCE 0.0005
/* Bytes to free before replicas and AOF are told. */
#define AT_ONCE (256.0 * (1 << 10))
/* Bytes that each command owes while more is used than is wanted, besides twice what was written
 * since the last one: the timer does the rest. */
#define OWED_AT_LEAST 4096
/* How long a command makes room, or looks for what may go: what is missing then is left to the
 * timer, and the server's setting stands above it until it is there. For what it only owes a
 * command has less time. */
#define COMMAND_US 4000
#define OWED_US    500

/* What the setting is raised by: above all that there is, and above what pipelines may take before
 * a timer comes by, or one transaction or script (four strings of the longest that can be sent);
 * and how often it is asked for whom. */
#define ABOVE_PAUSED  ((uint64_t)1 << 40)
#define ABOVE_BLOCKED ((uint64_t)2 << 30)
#define LOOK_US       100000

/* How long ago a timer's time is that is to be the first of all. */
#define GUARD_PAST_MS 60000

static struct {
    double owed;              /* bytes that the next command is to free at most, if none must */
    uint64_t written_by_then; /* when that was decided */
    bool others_by_timer_only;
    bool guarded; /* a timer comes before the server's */
    RedisModuleTimerID guard;
    bool steps_down;     /* the setting is about to */
    bool held_back;      /* a pause holds commands back */
    bool blocked;        /* clients wait for keys, or else, and memory may come to the limit */
    uint64_t blocked_us; /* when that was found out */
    bool look;           /* it may have changed since */
    size_t reserved;
    bool reservation_kept;
} evict;

/* What commands must find free beside the memory that they want. */
static size_t kept_for_others(void) {
    return evict.reservation_kept ? evict.reserved : 0;
}

/* Not where nothing may expire: a replica holds what its primary holds, whatever its own maxmemory
 * says. */
static bool may_evict(RedisModuleCtx *ctx) {
    return maxmemory_now()->evicts && !room_exhausted() && role_may_expire(ctx);
}

/* Whether there are records that the setting may be held for. */
static bool may_hold(RedisModuleCtx *ctx) {
    return maxmemory_now()->evicts && !room_nothing_may_go() && !room_exhausted() &&
           !role_follows(ctx);
}

bool evict_near(void) {
    return maxmemory_now()->limited && maxmemory_excess(MAXMEMORY_NEAR, evict.reserved) > 0;
}

/* ---- the server's own timer ------------------------------------------------------------------ */

static void guard(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    evict.guarded = false;
    if (maxmemory_server_excess(0, 0) > 0 && may_hold(ctx)) maxmemory_hold();
}

/* Whoever sets the setting, the server sets a timer then, which evicts maps if too much is used
 * when it runs: commands are carried out before, and the last of them takes what it likes. Ours
 * runs first: the server begins with the newest timer, and all those of modules are anew when one
 * comes whose time is the earliest; so one that waits makes way. A time before the server's clock
 * began is none. */
static void guard_start(RedisModuleCtx *ctx) {
    uint64_t past_ms = clock_monotonic_us() / 2000;
    if (past_ms > GUARD_PAST_MS) past_ms = GUARD_PAST_MS;
    if (evict.guarded) RedisModule_StopTimer(ctx, evict.guard, NULL);
    evict.guarded = true;
    evict.guard = RedisModule_CreateTimer(ctx, -(mstime_t)past_ms, guard, NULL);
}

static void hold(RedisModuleCtx *ctx) {
    maxmemory_hold();
    guard_start(ctx);
}

static bool room_is_due(RedisModuleCtx *ctx) {
    return room_missing(evict.reserved) > 0 && may_evict(ctx);
}

/* Whether what a pause has held back, and who is unblocked by a command, runs without the filter:
 * not on Redis 7.0, which does not tell a filter who sends a command either. */
static bool some_pass_unseen(void) {
    return filter_tells_sender();
}

/* By how much the setting has to be raised. */
static uint64_t wanted_above(void) {
    if (evict.held_back) return ABOVE_PAUSED;
    return evict.blocked ? ABOVE_BLOCKED : 0;
}

/* The limit may have been lowered since this was asked for. */
static void step_down(void *unused) {
    (void)unused;
    evict.steps_down = false;
    if (pause_holds()) return;
    evict.held_back = false;
    maxmemory_step_down(room_is_due(ckv.ctx));
    if (maxmemory_server_excess(0, 0) > 0 && may_hold(ckv.ctx)) maxmemory_hold();
    maxmemory_raise(wanted_above());
    guard_start(ckv.ctx);
}

/* Not among the timers: there ours would come after the server's, and before what was held back. */
static void step_down_soon(void) {
    bool due = maxmemory_held() || evict.held_back || maxmemory_raised() != wanted_above();
    if (evict.steps_down || !due || pause_holds()) return;
    evict.steps_down = true;
    RedisModule_EventLoopAddOneShot(step_down, NULL);
}

static void note_blocked(bool any) {
    evict.blocked = any;
    evict.blocked_us = clock_monotonic_us();
}

/* Asking takes as long as some commands. */
static void look_who_is_blocked(RedisModuleCtx *ctx) {
    bool long_ago = clock_monotonic_us() - evict.blocked_us > LOOK_US;
    if (!some_pass_unseen() || (!long_ago && !evict.look)) return;
    bool any = server_info_number(ctx, "clients", "blocked_clients") > 0;
    note_blocked(any && may_hold(ctx));
}

/* Where little is free, or was when the setting was raised. */
static void look_if_near(RedisModuleCtx *ctx) {
    if (maxmemory_server_excess(0, ABOVE_BLOCKED) > 0 || evict.blocked) look_who_is_blocked(ctx);
    evict.look = false;
}

bool evict_step(RedisModuleCtx *ctx, uint64_t deadline_us) {
    if (!maxmemory_now()->limited) return false;
    room_by_timer(true);
    if (evict_near()) room_weigh(evict.reserved);
    look_if_near(ctx);
    bool due = room_is_due(ctx);
    if (due) room_make(ctx, room_missing(evict.reserved), deadline_us, true);
    room_by_timer(false);
    step_down_soon();
    return due;
}

/* Bytes that the server would miss when it looks next: to it, its limit as it is now is one at
 * once. */
static double missed_by_server(void) {
    return maxmemory_server_excess(FREE_AT_ONCE, kept_for_others());
}

/* Bytes that the next command needs, or owes. Limits as they are wanted may be exceeded by more
 * than a command can make up for; but if commands left all of that to the timer, what they write
 * would be ahead of it wherever the processor is slow or others take it. */
static double needed_at_once(void) {
    /* Before every command: where the limit is not held, the server is asked once. */
    double over = maxmemory_held() ? maxmemory_excess(FREE_AT_ONCE, kept_for_others())
                                   : maxmemory_own_excess(FREE_AT_ONCE, kept_for_others());
    return fmin(fmax(missed_by_server(), fmin(over, evict.owed)), AT_ONCE);
}

static uint64_t time_for_it_us(void) {
    return missed_by_server() > 0 ? COMMAND_US : OWED_US;
}

uint64_t evict_now(RedisModuleCtx *ctx) {
    /* Who is told of an eviction may call CEVICT. */
    if (room_being_made() || !may_evict(ctx)) return 0;
    uint64_t before = room_freed();
    uint64_t deadline_us = clock_monotonic_us() + time_for_it_us();
    uint64_t evicted = room_make(ctx, needed_at_once(), deadline_us, !evict.others_by_timer_only);
    evict.owed -= (double)(room_freed() - before);
    return evicted;
}

/* ---- reservations ---------------------------------------------------------------------------- */

void evict_reserve(size_t bytes) {
    evict.reserved = bytes;
    if (bytes == 0) evict.reservation_kept = false;
}

bool evict_reserved(void) {
    bool free = maxmemory_excess(FREE_AT_ONCE, evict.reserved) <= 0;
    if (!maxmemory_now()->limited || free || !may_evict(ckv.ctx)) evict.reservation_kept = true;
    return evict.reservation_kept;
}

/* ---- before each command --------------------------------------------------------------------- */

/* As a command of its own, so that what it tells replicas and AOF is on its way when it is done:
 * "!" lets it replicate. */
static bool call_evict(void) {
    RedisModuleCallReply *reply = own_call(ckv.ctx, "cevict", "!");
    bool some = reply && RedisModule_CallReplyInteger(reply) > 0;
    own_call_drop(reply);
    return some;
}

/* Evicts some. Returns false if nothing went. A call takes 24 KB itself, for the client that it
 * stands for: of a small limit that is much. */
static bool evict_some(void) {
    removals_defer();
    bool some = feed_needed() ? call_evict() : evict_now(ckv.ctx) > 0;
    removals_tell_deferred(ckv.ctx);
    return some;
}

/* What goes within a command that comes with a slot by atomic migration is told to no replica: the
 * timer evicts. In Redis who sends it is no user; in Valkey it may be anybody. */
static bool may_come_with_slot(filtered *command) {
    if (!maps_any_hidden()) return false;
    if (version_is_valkey(VALKEY_ANY)) return true;
    uint64_t client = filter_sender(command);
    RedisModuleString *user = RedisModule_GetClientUserNameById(ckv.ctx, client);
    if (user) RedisModule_FreeString(ckv.ctx, user);
    return !user;
}

static void before_command(filtered *command) {
    /* Who is told of an eviction, or of what a command of ours does, may call commands. */
    if (room_being_made() || own_call_open()) return;
    maxmemory_decide();
    if (!maxmemory_now()->evicts) return;
    evict.owed = OWED_AT_LEAST + 2.0 * (double)(maxmemory_written() - evict.written_by_then);
    evict.written_by_then = maxmemory_written();
    if (may_come_with_slot(command)) {
        if (missed_by_server() > 0 && may_hold(ckv.ctx)) hold(ckv.ctx);
        return;
    }
    uint64_t began_us = 0;
    while (needed_at_once() > 0 && may_evict(ckv.ctx)) {
        /* A script's commands are one with the script. */
        if (within_script()) return;
        if (began_us == 0) began_us = clock_thread_us();
        bool late = clock_thread_us() - began_us > time_for_it_us();
        /* Room is also made by encoding what is young. */
        bool vain = late || (!evict_some() && needed_at_once() > 0);
        if (!vain || !may_evict(ckv.ctx)) continue;
        if (missed_by_server() > 0) hold(ckv.ctx);
        return;
    }
}

/* By how much the setting is to be raised before a command runs: who may wait is seen at once, and
 * looked for anew behind a change of settings or of the role. */
static uint64_t wanted_for(filtered *command) {
    if (!some_pass_unseen()) return 0;
    if (evict.look) look_if_near(ckv.ctx);
    bool near =
        !evict.blocked && evict_may_block(command) && maxmemory_server_excess(0, ABOVE_BLOCKED) > 0;
    if (near && may_hold(ckv.ctx)) note_blocked(true);
    return wanted_above();
}

/* What the last step took for the command, to move records out or to note its keys, is made up for
 * by the next one. A script's commands are one with the script. */
static void behind_serving(filtered *command) {
    if (room_being_made() || own_call_open()) return;
    bool over = maxmemory_server_excess(0, 0) > 0, paused = some_pass_unseen() && pause_holds();
    /* What goes into the file of settings is what was asked for. */
    bool rewrites = some_pass_unseen() && evict_rewrites_settings(command);
    if (rewrites && !over && !paused) {
        maxmemory_raise(0);
        guard_start(ckv.ctx);
        return;
    }
    bool raises = wanted_for(command) > maxmemory_raised();
    if ((!over && !paused && !raises) || !may_hold(ckv.ctx)) return;
    if (within_script()) return;
    evict.held_back |= paused;
    maxmemory_raise(wanted_above());
    if (over) hold(ckv.ctx);
}

/* ---- settings -------------------------------------------------------------------------------- */

static void configure(RedisModuleCtx *ctx, bool server_limit) {
    maxmemory_configure(ctx, server_limit);
    const maxmemory_settings *now = maxmemory_now();
    room_configure();
    room_weigh(evict.reserved);
    filter_set(ctx, FILTER_MAKE_ROOM, now->limited ? before_command : NULL);
    filter_set(ctx, FILTER_HOLD, now->wanted_limit > 0 && now->evicts ? behind_serving : NULL);
}

/* Whether the names of settings that have changed contain a text, or one is that text. */
static bool is_about(const RedisModuleConfigChange *change, const char *text, bool exactly) {
    for (uint32_t i = 0; i < change->num_changes; i++) {
        const char *name = change->config_names[i];
        if (exactly ? !strcasecmp(name, text) : strstr(name, text) != NULL) return true;
    }
    return false;
}

/* Only what concerns memory counts: a file that is being saved changes settings, map by map, and
 * no record may go while it is written. What is replicated within CONFIG SET would make that a
 * write, to be replicated itself: room is made by the timer. The server has just set a timer of its
 * own to make room, which would take maps: it must find enough. */
static void on_config(RedisModuleCtx *ctx, const RedisModuleConfigChange *change) {
    if (!is_about(change, "maxmemory", false) || maxmemory_stepping()) return;
    configure(ctx, is_about(change, "maxmemory", true));
    evict.held_back &= may_hold(ctx);
    evict.blocked &= may_hold(ctx);
    evict.look = true;
    if (room_missing(0) > 0 && may_hold(ctx)) maxmemory_hold();
    /* No further up: what is carried out with this may write the file of settings. */
    if (evict.held_back || wanted_above() < maxmemory_raised()) maxmemory_raise(wanted_above());
    guard_start(ctx);
}

static void on_role(bool follows) {
    (void)follows;
    evict.look = true;
}

/* Besides ourselves these are part of a server: Valkey 9 runs scripts in a module, which has no key
 * open meanwhile; Redis 8's vector sets call no commands. */
static bool may_have_keys_open(RedisModuleCallReply *module) {
    static const char *const harmless[] = {CKV_NAME, "lua", "vectorset"};
    RedisModuleCallReply *name = RedisModule_CallReplyArrayElement(module, 1);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (own_call_told(name, harmless[i])) return false;
    return true;
}

/* Another module may call a command while it has a key open: then is no time to evict keys. */
void evict_modules_changed(RedisModuleCtx *ctx) {
    RedisModuleCallReply *list = own_call(ctx, "module|list", "c", "LIST");
    evict.others_by_timer_only = !list;
    for (size_t i = 0; list && i < RedisModule_CallReplyLength(list); i++)
        evict.others_by_timer_only |=
            may_have_keys_open(RedisModule_CallReplyArrayElement(list, i));
    own_call_drop(list);
}

void evict_start(RedisModuleCtx *ctx) {
    room_start();
    evict_modules_changed(ctx);
    settings_listen(on_config);
    role_listen(on_role);
    configure(ctx, true);
}
