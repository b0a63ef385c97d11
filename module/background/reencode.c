/* reencode.c: bringing every page to the current codec. See reencode.h. */
#include "background/reencode.h"

#include "keyspace/maps.h"
#include "server/clock.h"
#include "server/waiting.h"

static struct {
    bool running;
    uint64_t arrivals; /* of maps, when it began */
    maps_cursor cursor;
    mem_retired old; /* pages that are written anew */
    waiting clients;
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
    waiting_answer(&pass.clients, NULL);
}

/* Whether maps have come back since the last pass, while it had to leave some old codec in use. */
static bool worth_another(void) {
    const codecs *all = &ckv.shared.codecs;
    bool old = codecs_count(all) > (codecs_current_id(all) != CODEC_RAW);
    return old && maps_arrivals() != pass.arrivals;
}

/* One bucket at least, and then as many as will fit: one can take longer than a slice, and would
 * double it if it were begun at its end. */
void reencode_step(uint64_t deadline_us) {
    keyed_map *s;
    uint32_t bucket;
    uint64_t now_ticks = expiry_ticks(clock_now_ms()), began_us, now_us = clock_monotonic_us();
    if (!pass.running && worth_another()) reencode_start();
    while (pass.running) {
        if (!maps_cursor_next(&pass.cursor, &s, &bucket)) {
            finish();
            return;
        }
        map_reencode(s->m, bucket, now_ticks, &pass.old);
        began_us = now_us;
        now_us = clock_monotonic_us();
        if (now_us + (now_us - began_us) >= deadline_us) return;
    }
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
    if (pass.clients.count > before) reencode_start();
    return REDISMODULE_OK;
}

bool reencode_awaited(void) {
    return pass.clients.count > 0;
}
