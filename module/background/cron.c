/* cron.c: what happens between commands. See cron.h. */
#include "background/cron.h"

#include "background/active_expiry.h"
#include "background/defrag.h"
#include "background/evict.h"
#include "background/mover.h"
#include "background/old_codecs.h"
#include "background/rates.h"
#include "background/reencode.h"
#include "background/settle.h"
#include "background/train.h"
#include "keyspace/due.h"
#include "keyspace/renamed_maps.h"
#include "keyspace/spent.h"
#include "server/clock.h"
#include "server/feed.h"
#include "server/filter.h"
#include "server/loop.h"
#include "server/own_call.h"
#include "server/role.h"
#include "server/settings.h"
#include "server/timer.h"

/* What is begun between two commands. The last step takes less than half of it longer: a slice is
 * to end within a millisecond. */
#define SLICE_US   700
#define EXPIRE_US  500 /* of expiry while little expires */
#define IDLE_MS    100 /* between slices: with nothing to do, */
#define BUSY_MS    10  /* with something to do, */
#define HURRIED_MS 1   /* with a client waiting for it, or memory full */
/* Slices that come later than this were kept waiting by long pipelines. */
#define LATE_US 5000
/* So many commands of one are carried out before the time is looked at. */
#define COMMANDS 8

/* ---- the steps ------------------------------------------------------------------------------- */

/* What they last said of themselves. */
static bool much_expires, full;

/* While much expires: the share of time that the server gives to keys, a quarter and more by
 * `active-expire-effort`. */
static int expire_wait_ms(void) {
    int percent = 25 + 2 * (settings_expire_effort() - 1);
    return (SLICE_US * (100 - percent) + 500 * percent) / (1000 * percent);
}

static void step_young(RedisModuleCtx *ctx, uint64_t deadline_us) {
    (void)ctx;
    bool hurry = reencode_awaited() || evict_near();
    settle_step(deadline_us, hurry ? SETTLE_ALL : train_running() ? SETTLE_LATER : SETTLE_OLD);
}

static void step_codecs(RedisModuleCtx *ctx, uint64_t deadline_us) {
    (void)ctx;
    if (train_step(deadline_us)) reencode_start();
    reencode_step(deadline_us);
}

/* Slices that come sooner, for the sake of others, are not for looking at every record's expiry
 * all over again. */
static void step_expiry(RedisModuleCtx *ctx, uint64_t deadline_us) {
    static uint64_t due_us;
    uint64_t now_us = clock_monotonic_us();
    if (now_us < due_us) return;
    if (!much_expires && deadline_us > now_us + EXPIRE_US) deadline_us = now_us + EXPIRE_US;
    much_expires = active_expiry_step(ctx, deadline_us);
    due_us = now_us + 1000 * (uint64_t)(much_expires ? expire_wait_ms() : IDLE_MS);
}

static void step_eviction(RedisModuleCtx *ctx, uint64_t deadline_us) {
    full = evict_step(ctx, deadline_us);
}

#define STEPS       5
#define QUIET_STEPS 2 /* the first: they tell nobody of anything */
static void (*const steps[STEPS])(RedisModuleCtx *, uint64_t) = {
    step_young, step_codecs, step_expiry, step_eviction, defrag_step};

/* Whether a step takes out no records. */
static bool keeps_records(unsigned step) {
    return steps[step] != step_expiry && steps[step] != step_eviction;
}

/* The first so many. Each has its turn to begin: who comes later has what time the others leave.
 * What a slice takes out is told of by one command (keyspace/removals.h), so only one step does. */
static void take_steps(RedisModuleCtx *ctx, unsigned count) {
    static unsigned turn;
    uint64_t deadline_us = clock_monotonic_us() + SLICE_US;
    uint64_t gone = ckv.stats.expired + ckv.stats.evicted;
    turn++;
    for (unsigned i = 0; i < count && clock_monotonic_us() < deadline_us; i++) {
        unsigned step = (turn + i) % count;
        if (keeps_records(step) || ckv.stats.expired + ckv.stats.evicted == gone)
            steps[step](ctx, deadline_us);
    }
}

static timer slices;
static uint64_t due_us;  /* when they were to come */
static uint64_t next_us; /* when some may come between commands */

static void note_time(uint64_t began_us) {
    uint64_t took_us = clock_thread_us() - began_us;
    if (took_us > ckv.stats.longest_slice_us) ckv.stats.longest_slice_us = took_us;
}

/* Where commands come in long pipelines the server looks at its timers a few times a second: the
 * encoders would do nothing most of the time, and new dictionaries would take a minute to come. So
 * what is told to nobody goes on between commands, too. */
static void between_commands(filtered *command) {
    static unsigned passed;
    (void)command;
    if (++passed % COMMANDS || own_call_open() || clock_monotonic_us() < next_us) return;
    if (role_loads_any(ckv.ctx)) return; /* codecs have come by now that nothing is of yet */
    uint64_t began_us = clock_thread_us();
    take_steps(ckv.ctx, QUIET_STEPS);
    next_us = clock_monotonic_us() + 1000 * (settle_much() ? HURRIED_MS : BUSY_MS);
    note_time(began_us);
}

static void tick(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    uint64_t began_us = clock_thread_us();
    bool late = clock_monotonic_us() > due_us + LATE_US;
    take_steps(ctx, STEPS);
    renamed_maps_step();
    old_codecs_free();
    map_shared_trim(&ckv.shared);
    feed_check(ctx);
    rates_tick();
    due_rest();
    loop_rest();
    active_expiry_own_step(ctx);
    bool goes_on = reencode_running() || train_running() || settle_running();
    bool busy = spent_step() || goes_on || evict_near() || defrag_running();
    bool hurried = reencode_awaited() || full || settle_much();
    int wait_ms = hurried ? HURRIED_MS : much_expires ? expire_wait_ms() : busy ? BUSY_MS : IDLE_MS;
    timer_set(ctx, &slices, wait_ms);
    next_us = due_us = clock_monotonic_us() + 1000 * (uint64_t)wait_ms;
    filter_set(ctx, FILTER_GO_ON, late && goes_on ? between_commands : NULL);
    note_time(began_us);
}

void cron_start(RedisModuleCtx *ctx) {
    reencode_init();
    train_start();
    defrag_start();
    active_expiry_start();
    mover_start(ctx);
    timer_register(ctx, &slices, tick);
    timer_set(ctx, &slices, IDLE_MS);
}
