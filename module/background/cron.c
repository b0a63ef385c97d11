/* cron.c: what happens between commands. See cron.h. */
#include "background/cron.h"

#include "background/evict.h"
#include "background/active_expiry.h"
#include "server/feed.h"
#include "background/rates.h"
#include "keyspace/renamed_maps.h"
#include "background/train.h"
#include "server/waiting.h"

#define SLICE_US       1000
#define EXPIRE_MUCH_US 2500 /* a quarter of BUSY_MS, while much expires */
#define EMPTY_MS       1000 /* that a store must be empty for its codecs to go */
#define IDLE_MS        100  /* between slices: with nothing to do, */
#define BUSY_MS        10   /* with something to do, */
#define HURRIED_MS     1    /* and with a client waiting for it, or memory full */
#define LATE_US        200000

static struct {
    bool reencoding;
    bool failed; /* some page of the pass could not be brought to the current codec */
    maps_cursor cursor;
    mem_retired old; /* pages that are written anew */
    waiting clients;
} work;

void cron_reencode(void) {
    work.reencoding = true;
    work.failed = false;
    maps_cursor_start(&work.cursor);
}

/* No page names an old codec any more: they can go. Unless there are values that no pass comes by,
 * on their way to or from the keyspace. */
static void free_old_codecs(void) {
    codecs *all = &ckv.shared.codecs;
    if (work.failed || maps_any_unlisted()) return;
    for (int i = 1; i < CODECS_MAX; i++)
        if (codecs_get(all, (uint8_t)i) && i != codecs_current_id(all))
            codecs_remove(all, (uint8_t)i);
}

/* What an empty store has learned is about data that may never come back. */
static void clear_empty_store(void) {
    static int64_t empty_ms;
    static bool used;
    if (maps_any() || train_running()) {
        used = true;
        empty_ms = 0;
    } else if (!empty_ms) {
        empty_ms = ckv_now_ms();
    } else if (used && ckv_now_ms() - empty_ms >= EMPTY_MS) {
        map_shared_clear(&ckv.shared);
        used = false;
    }
}

/* One bucket at least, and then as many as will fit: one can take longer than a slice, and would
 * double it if it were begun at its end. */
static void reencode(uint64_t deadline_us) {
    stored_map *s;
    uint32_t bucket;
    uint64_t now_ticks = expiry_ticks(ckv_now_ms()), began_us, now_us = ckv_monotonic_us();
    do {
        if (!maps_cursor_next(&work.cursor, &s, &bucket)) {
            work.reencoding = false;
            mem_free_retired(&ckv.mem, &work.old);
            free_old_codecs();
            waiting_answer(&work.clients, NULL);
            return;
        }
        if (!map_reencode(s->m, bucket, now_ticks, &work.old)) work.failed = true;
        began_us = now_us;
        now_us = ckv_monotonic_us();
    } while (now_us + (now_us - began_us) < deadline_us);
}

static void tick(RedisModuleCtx *ctx, void *unused);

static struct {
    RedisModuleTimerID id;
    uint64_t due_us; /* by the clock for measuring */
} timer;

static void schedule(RedisModuleCtx *ctx, int wait_ms) {
    timer.due_us = ckv_monotonic_us() + (uint64_t)wait_ms * 1000;
    timer.id = RedisModule_CreateTimer(ctx, wait_ms, tick, NULL);
}

/* The server's timers go by the wall clock: set back by an hour, it would keep ours for that long.
 */
static void on_server_cron(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e, (void)sub, (void)data;
    if (ckv_monotonic_us() < timer.due_us + LATE_US) return;
    RedisModule_StopTimer(ctx, timer.id, NULL);
    schedule(ctx, HURRIED_MS);
}

static void tick(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    static bool much_expires;
    uint64_t deadline_us = ckv_monotonic_us() + SLICE_US;
    if (train_step(deadline_us)) cron_reencode();
    if (work.reencoding) reencode(deadline_us);
    deadline_us = ckv_monotonic_us() + (much_expires ? EXPIRE_MUCH_US : SLICE_US);
    much_expires = expire_step(ctx, deadline_us);
    bool full = evict_step(ctx, ckv_monotonic_us() + SLICE_US);
    strays_step();
    clear_empty_store();
    map_shared_trim(&ckv.shared);
    feed_check(ctx);
    rates_tick();
    bool busy = work.reencoding || train_running() || much_expires || evict_near();
    int wait_ms = work.clients.count || full ? HURRIED_MS : busy ? BUSY_MS : IDLE_MS;
    schedule(ctx, wait_ms);
}

void cron_start(RedisModuleCtx *ctx) {
    maps_cursor_register(&work.cursor);
    train_start();
    expire_start();
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_CronLoop, on_server_cron);
    schedule(ctx, IDLE_MS);
}

int cron_optimize(RedisModuleCtx *ctx) {
    size_t before = work.clients.count;
    waiting_add(ctx, &work.clients);
    if (work.clients.count > before) cron_reencode();
    return REDISMODULE_OK;
}

uint64_t cron_pages_to_reencode(void) {
    return work.reencoding ? maps_cursor_pages_ahead(&work.cursor) : 0;
}
