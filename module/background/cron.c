/* cron.c: what happens between commands. See cron.h. */
#include "background/cron.h"

#include "background/active_expiry.h"
#include "background/evict.h"
#include "background/old_codecs.h"
#include "background/rates.h"
#include "background/reencode.h"
#include "background/train.h"
#include "keyspace/renamed_maps.h"
#include "server/clock.h"
#include "server/feed.h"

#define SLICE_US       1000
#define EXPIRE_MUCH_US 2500 /* a quarter of BUSY_MS, while much expires */
#define IDLE_MS        100  /* between slices: with nothing to do, */
#define BUSY_MS        10   /* with something to do, */
#define HURRIED_MS     1    /* and with a client waiting for it, or memory full */
#define LATE_US        200000

static void tick(RedisModuleCtx *ctx, void *unused);

static struct {
    RedisModuleTimerID id;
    uint64_t due_us; /* by the clock for measuring */
} timer;

static void schedule(RedisModuleCtx *ctx, int wait_ms) {
    timer.due_us = clock_monotonic_us() + (uint64_t)wait_ms * 1000;
    timer.id = RedisModule_CreateTimer(ctx, wait_ms, tick, NULL);
}

/* The server's timers go by the wall clock: set back by an hour, it would keep ours for that long.
 */
static void on_server_cron(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e, (void)sub, (void)data;
    if (clock_monotonic_us() < timer.due_us + LATE_US) return;
    RedisModule_StopTimer(ctx, timer.id, NULL);
    schedule(ctx, HURRIED_MS);
}

static void tick(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    static bool much_expires;
    uint64_t deadline_us = clock_monotonic_us() + SLICE_US;
    if (train_step(deadline_us)) reencode_start();
    reencode_step(deadline_us);
    deadline_us = clock_monotonic_us() + (much_expires ? EXPIRE_MUCH_US : SLICE_US);
    much_expires = active_expiry_step(ctx, deadline_us);
    bool full = evict_step(ctx, clock_monotonic_us() + SLICE_US);
    renamed_maps_step();
    old_codecs_free();
    map_shared_trim(&ckv.shared);
    feed_check(ctx);
    rates_tick();
    bool busy = reencode_running() || train_running() || much_expires || evict_near();
    int wait_ms = reencode_awaited() || full ? HURRIED_MS : busy ? BUSY_MS : IDLE_MS;
    schedule(ctx, wait_ms);
}

void cron_start(RedisModuleCtx *ctx) {
    reencode_init();
    train_start();
    active_expiry_start();
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_CronLoop, on_server_cron);
    schedule(ctx, IDLE_MS);
}
