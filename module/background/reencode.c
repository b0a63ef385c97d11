/* reencode.c: bringing every page to the current codec. See reencode.h. */
#include "background/reencode.h"

#include "core/map/map_reencode.h"
#include "keyspace/maps.h"
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

/* As often as will fit: no go is begun that would end after the slice, if it takes as long as the
 * last one. */
void reencode_step(uint64_t deadline_us) {
    keyed_map *s;
    uint32_t bucket;
    uint64_t now_ticks = expiry_ticks(clock_now_ms()), began_us, now_us = clock_monotonic_us();
    if (!pass.running && worth_another()) reencode_start();
    while (pass.running && now_us < deadline_us) {
        if (!maps_cursor_next(&pass.cursor, &s, &bucket)) {
            finish();
            return;
        }
        if (!go_on(s, bucket, now_ticks)) maps_cursor_again(&pass.cursor, s, bucket);
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
