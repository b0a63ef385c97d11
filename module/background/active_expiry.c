/* active_expiry.c: active expiry. See active_expiry.h. */
#include "background/active_expiry.h"

#include "core/map/map_expire.h"
#include "keyspace/due.h"
#include "keyspace/lookup.h"
#include "keyspace/map_home.h"
#include "keyspace/maps.h"
#include "keyspace/own_records.h"
#include "keyspace/removals.h"
#include "server/clock.h"
#include "server/role.h"
#include "server/settings.h"

/* Of what a slice has looked at, more than this has expired: there is much to do. Less by so much
 * for each step of `active-expire-effort` beyond 1. */
#define MUCH_PERCENT   10
#define EFFORT_PERCENT 1
#define SHARE_WEIGHT   0.05 /* of one slice, in the share that is shown */
/* From the beginning of one pass over all buckets to that of the next, at least: what expires soon
 * after it was written is known by name (keyspace/due.h). */
#define PASS_US 500000

static struct {
    maps_cursor cursor;
    uint64_t next_us; /* no other one begins before */
    removals gone;
    RedisModuleCtx *ctx;
    bool disabled;
} pass;

static void expire_due(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_ms,
                       removals *gone) {
    if (!pass.disabled) lookup_expire(ctx, name, now_ms, gone);
}

/* What a replica's own clients have written is its own to delete: the server's, while it is one of
 * the server's own. */
static bool expire_own(RedisModuleCtx *ctx, RedisModuleString *name) {
    record r;
    lookup_answer answer = lookup_quietly(ctx, name, clock_now_ms(), &r);
    if (answer != LOOKUP_DONE || !r.there) return answer == LOOKUP_NATIVE;
    if (r.found) return map_expiry_ms(&r.pos) != EXPIRY_NEVER;
    record_expired(&r);
    return false;
}

void active_expiry_own_step(RedisModuleCtx *ctx) {
    own_records_step(ctx, expire_own);
}

void active_expiry_enable(bool enabled) {
    pass.disabled = !enabled;
}

void active_expiry_start(void) {
    due_start(expire_due);
    maps_cursor_register(&pass.cursor);
}

/* Expires what is due in one bucket, at most a batch; true if that was all. */
static bool expire_bucket(keyed_map *s, uint32_t bucket, int64_t now_ms, uint64_t *deleted) {
    RedisModule_SelectDb(pass.ctx, s->db);
    pass.gone.db = s->db;
    uint64_t large_bytes = s->m->totals.large_bytes;
    uint32_t n = map_expire(s->m, bucket, now_ms, REMOVALS_STEP, removals_note, &pass.gone);
    *deleted += n;
    ckv.stats.expired += n;
    bool all = n < REMOVALS_STEP && large_bytes - s->m->totals.large_bytes < MAP_EXPIRE_BYTES;
    map_home_drop_if_empty(pass.ctx, s);
    return all;
}

bool active_expiry_step(RedisModuleCtx *ctx, uint64_t deadline_us) {
    keyed_map *s;
    uint32_t bucket;
    uint64_t looked_at = 0, deleted = 0;
    uint64_t start_us = clock_monotonic_us();
    int64_t now_ms = clock_now_ms();
    if (pass.disabled || !role_may_expire(ctx)) return false;
    pass.ctx = ctx;
    if (!pass.cursor.at) {
        if (start_us < pass.next_us) return false;
        pass.next_us = start_us + PASS_US;
        maps_cursor_start(&pass.cursor);
    }
    while (maps_cursor_next(&pass.cursor, &s, &bucket)) {
        if (s->m->totals.expiring == 0 || !maps_served(s)) {
            maps_cursor_pass(&pass.cursor);
        } else {
            looked_at += s->m->totals.records / s->m->buckets + 1;
            /* What is left of the bucket is due again at once. */
            if (!expire_bucket(s, bucket, now_ms, &deleted))
                maps_cursor_again(&pass.cursor, s, bucket);
        }
        if (removals_full(&pass.gone) || clock_monotonic_us() >= deadline_us) break;
    }
    removals_announce(ctx, &pass.gone, REMOVALS_EXPIRED);
    if (looked_at > 0)
        ckv.stats.expired_share +=
            SHARE_WEIGHT * ((double)deleted / (double)looked_at - ckv.stats.expired_share);
    ckv.stats.expire_us += clock_monotonic_us() - start_us;
    int percent = MUCH_PERCENT - EFFORT_PERCENT * (settings_expire_effort() - 1);
    return deleted * 100 > looked_at * (uint64_t)percent;
}
