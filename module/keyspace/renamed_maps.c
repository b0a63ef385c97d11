/* renamed_maps.c: see renamed_maps.h. */
#include "keyspace/renamed_maps.h"

#include "keyspace/maps.h"
#include "keyspace/places.h"
#include "keyspace/map_home.h"

#define NAMES_AT_ONCE 512

/* What is tried next. Begins anew with every loss. */
static struct {
    bool searching;
    int db;
    uint32_t place;
} at;

void renamed_maps_expect(void) {
    at.searching = true;
    at.db = 0;
    at.place = 0;
}

static void search(uint64_t names) {
    keyed_map *s;
    if (!maps_any_unlisted()) at.searching = false;
    while (at.searching && names > 0) {
        if (RedisModule_SelectDb(ckv.ctx, at.db) != REDISMODULE_OK) {
            at.searching = false; /* there are no more */
            return;
        }
        bool empty = RedisModule_DbSize(ckv.ctx) == 0;
        for (; !empty && at.place < ckv.places && names > 0; at.place++, names--)
            if (!maps_at(at.db, at.place)) map_home_look(ckv.ctx, at.db, at.place, &s);
        if (!empty && at.place < ckv.places) return;
        at.db++;
        at.place = 0;
    }
}

void renamed_maps_step(void) {
    search(NAMES_AT_ONCE);
}

void renamed_maps_find(void) {
    if (places_layout() != PLACES_SLOTS) search(UINT64_MAX);
}
