/* reencode.c: bringing every page to the current codec. See reencode.h. */
#include "background/reencode.h"

#include "background/evict.h"
#include "background/settle.h"
#include "core/map/map_reencode.h"
#include "keyspace/maps.h"
#include "server/child.h"
#include "server/clock.h"
#include "server/waiting.h"

/* Bytes in one go, which take less than half a millisecond; a longer value is a go of its own. */
#define GO_BYTES (4u << 10)

static struct {
    bool running;
    uint64_t arrivals; /* of maps, when it began */
    maps_cursor cursor;
    mem_retired old; /* pages that are written anew */
    waiting clients;
    uint64_t young; /* where their encoding must come to before the clients are answered */
} pass;

void reencode_init(void) {
    maps_cursor_register(&pass.cursor);
}

void reencode_start(void) {
    pass.running = true;
    pass.arrivals = maps_arrivals();
    maps_cursor_start(&pass.cursor);
}

static void finish(void) {
    pass.running = false;
    mem_free_retired(&ckv.mem, &pass.old);
    codecs_remove_unused(&ckv.shared.codecs);
}

/* When all is of the current codec that was there when the last client came, young values too. */
static void answer(void) {
    if (pass.clients.count == 0 || pass.running || !settle_has_come_to(pass.young)) return;
    waiting_answer(&pass.clients, NULL);
}

/* True: the bucket is done with. If memory runs out or a record is damaged, the codec of what is
 * left stays in use. */
static bool go_on(keyed_map *s, uint32_t bucket, uint64_t now_ticks) {
    return map_reencode(s->m, bucket, now_ticks, GO_BYTES, &pass.old) != MAP_MORE;
}

/* Whether maps have come back since the last pass, while it had to leave some old codec in use. */
static bool worth_another(void) {
    const codecs *all = &ckv.shared.codecs;
    bool old = codecs_count(all) > (codecs_current_id(all) != CODEC_RAW);
    return old && maps_arrivals() != pass.arrivals;
}

/* A child that saves keeps the pages that are written anew, up to all of them. Records that must go
 * for want of memory are worth more, and so is who waits. */
static bool waits_for_child(void) {
    return child_at_work() && !reencode_awaited() && !evict_near();
}

/* As often as will fit: no go is begun that would end after the slice, if it takes as long as the
 * last one. */
void reencode_step(uint64_t deadline_us) {
    keyed_map *s;
    uint32_t bucket;
    uint64_t now_ticks = expiry_ticks(clock_now_ms()), began_us, now_us = clock_monotonic_us();
    if (waits_for_child()) return;
    if (!pass.running && worth_another()) reencode_start();
    while (pass.running && now_us < deadline_us) {
        if (!maps_cursor_next(&pass.cursor, &s, &bucket)) {
            finish();
            break;
        }
        if (!go_on(s, bucket, now_ticks))
            maps_cursor_again(&pass.cursor, s, map_bucket_or_last(s->m, bucket));
        began_us = now_us;
        now_us = clock_monotonic_us();
        if (now_us + (now_us - began_us) >= deadline_us) return;
    }
    answer();
}

bool reencode_running(void) {
    return pass.running;
}

uint64_t reencode_pages_ahead(void) {
    return pass.running ? maps_cursor_pages_ahead(&pass.cursor) : 0;
}

int reencode_now(RedisModuleCtx *ctx) {
    size_t before = pass.clients.count;
    waiting_add(ctx, &pass.clients);
    if (pass.clients.count > before) {
        pass.young = settle_mark();
        reencode_start();
    }
    return REDISMODULE_OK;
}

bool reencode_awaited(void) {
    return pass.clients.count > 0;
}
