/* room.c: see room.h. */
#include "background/room.h"

#include "background/evict_other_keys.h"
#include "background/mover.h"
#include "background/settle.h"
#include "core/map/map_evict.h"
#include "keyspace/map_home.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "keyspace/removals.h"
#include "server/clock.h"

#include <math.h>

/* Of what may go, see evict.h. */
#define FREE_SLOWLY 0.01
/* Nothing was found that may go: how long that is believed. */
#define EXHAUSTED_US      10000000
#define EXHAUSTED_WRITTEN (64 << 10) /* bytes of new records */
/* What the Redis key of a map takes, about. */
#define KEY_BYTES 100
/* Maps that are passed over before the time is looked at. */
#define PASSED_AT_ONCE 500

/* Bytes that records and other keys take, as far as they give way together. */
typedef struct balance {
    double records, others;
} balance;

static struct {
    map_eviction how;
    maps_cursor hand;
    removals gone;
    uint32_t rounds_in_vain, calls_in_vain; /* of the hand, without a record that could go */
    uint64_t exhausted_us;                  /* when nothing was found; 0: not so */
    bool nothing_there;                     /* because there was no record that may go */
    uint64_t exhausted_written;             /* what had been written by then */
    uint64_t freed_records, freed_others;   /* bytes, lately; */
    uint64_t freed_aside;                   /* by what moved in again */
    balance weights;
    bool making;   /* right now */
    bool by_timer; /* and no client's command is under way */
} room;

bool room_nothing_may_go(void) {
    map_totals all = maps_totals().totals;
    return all.records == 0 || (room.how.expiring_only && all.expiring == 0);
}

static bool give_up(bool nothing_there) {
    room.nothing_there = nothing_there;
    room.rounds_in_vain = room.calls_in_vain = 0;
    room.exhausted_us = clock_monotonic_us();
    room.exhausted_written = maxmemory_written();
    return false;
}

/* The next bucket from which something may go; false: there is none. *s is NULL if none was found
 * among many maps: look again. */
static bool move_hand(keyed_map **s, uint32_t *bucket) {
    int passed = 0;
    if (room_nothing_may_go()) return give_up(true);
    while (room.rounds_in_vain <= MAP_EVICT_ROUNDS || room.calls_in_vain <= MAP_EVICT_CALLS) {
        while (maps_cursor_next(&room.hand, s, bucket)) {
            bool some = !room.how.expiring_only || (*s)->m->totals.expiring > 0;
            if (some && maps_served(*s)) return true;
            maps_cursor_pass(&room.hand);
            *s = NULL;
            if (++passed == PASSED_AT_ONCE) return true;
        }
        maps_cursor_start(&room.hand);
        room.rounds_in_vain++;
        room.calls_in_vain++; /* even if there is no bucket */
    }
    return give_up(false);
}

/* Evicts from one bucket; adds to *evicted. False: nothing is left that may go. */
static bool evict_bucket(RedisModuleCtx *ctx, uint64_t *evicted) {
    keyed_map *s;
    uint32_t bucket;
    if (!move_hand(&s, &bucket)) return false;
    if (!s) return true;
    RedisModule_SelectDb(ctx, s->db);
    room.gone.db = s->db;
    room.how.now_ms = clock_now_ms();
    uint64_t before = map_record_bytes(&s->m->totals);
    uint32_t n = map_evict(s->m, bucket, &room.how, removals_note, &room.gone);
    room.calls_in_vain++;
    if (n == 0) return true;
    if (map_record_bytes(&s->m->totals) < before)
        room.freed_records += before - map_record_bytes(&s->m->totals);
    room.rounds_in_vain = room.calls_in_vain = 0;
    *evicted += n;
    ckv.stats.evicted += n;
    if (s->m->totals.records == 0) room.freed_records += map_bytes(s->m) + KEY_BYTES;
    map_home_drop_if_empty(ctx, s);
    return true;
}

/* What the timer keeps free for commands: of what may go, or a small server whose memory is mostly
 * its own would hardly keep any of it. */
static size_t kept_for_commands(void) {
    double may_go = room.weights.records + room.weights.others;
    return (size_t)fmin(FREE_SLOWLY * may_go, MAXMEMORY_FREE_MOST);
}

double room_missing(size_t reserved) {
    return maxmemory_excess(0, reserved + kept_for_commands());
}

void room_weigh(size_t reserved) {
    room.weights = (balance){(double)maxmemory_records_used(), 0};
    bool own_limit_is_why = maxmemory_own_excess(0, reserved + kept_for_commands()) > 0;
    if (maxmemory_now()->wanted_limit > 0 && !own_limit_is_why)
        room.weights.others = others_bytes(ckv.ctx, &room.how, room.by_timer);
}

static bool turn_of_others(void) {
    return (double)room.freed_others * room.weights.records <
           (double)room.freed_records * room.weights.others;
}

uint64_t room_make(RedisModuleCtx *ctx, double bytes, uint64_t deadline_us, bool others) {
    uint64_t evicted = 0;
    bool young = true;
    bool aside = others || room.by_timer; /* another module may have them open */
    if (room.by_timer) {                  /* only what was freed lately is to count */
        room.freed_records /= 2;
        room.freed_others /= 2;
    }
    room.making = true;
    double wanted = (double)room_freed() + bytes;
    while ((double)room_freed() < wanted) {
        size_t freed = aside ? mover_make_room(ctx) : 0;
        room.freed_aside += freed;
        aside = freed > 0; /* what is in vain is not tried again */
        if (freed == 0 && others && turn_of_others())
            room.freed_others += freed = others_evict(ctx, &room.how, room.by_timer);
        if (freed == 0 && young) {
            room.freed_records += freed = settle_some();
            young = freed > 0;
        }
        evicted += freed > 0;
        if (freed == 0 && !evict_bucket(ctx, &evicted)) break;
        if (removals_full(&room.gone)) break;
        if (clock_monotonic_us() >= deadline_us) break;
    }
    removals_announce(ctx, &room.gone, REMOVALS_EVICTED);
    room.making = false;
    return evicted;
}

bool room_exhausted(void) {
    if (room.exhausted_us == 0) return false;
    if (room.nothing_there && !room_nothing_may_go()) room.exhausted_us = 0;
    if (clock_monotonic_us() - room.exhausted_us > EXHAUSTED_US) room.exhausted_us = 0;
    if (maxmemory_written() - room.exhausted_written > EXHAUSTED_WRITTEN) room.exhausted_us = 0;
    return room.exhausted_us != 0;
}

uint64_t room_freed(void) {
    return room.freed_records + room.freed_others + room.freed_aside;
}

bool room_being_made(void) {
    return room.making;
}

void room_by_timer(bool by) {
    room.by_timer = by;
}

void room_configure(void) {
    room.how.order = maxmemory_now()->order;
    room.how.expiring_only = maxmemory_now()->expiring_only;
    room.exhausted_us = 0;
}

void room_start(void) {
    maps_cursor_register(&room.hand);
}
