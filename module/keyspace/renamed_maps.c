/* renamed_maps.c: see renamed_maps.h. */
#include "keyspace/renamed_maps.h"

#include "keyspace/map_home.h"
#include "keyspace/maps.h"
#include "keyspace/places.h"

#define MAPS_AT_ONCE 64

/* Whether maps that are away have come back under the names of their homes. The size of a database
 * says nothing of slots that Valkey 9 is being sent. */
static void look_for(const uint32_t *homes, int count) {
    keyed_map *s;
    bool slots = places_are_slots();
    for (int db = 0; RedisModule_SelectDb(ckv.ctx, db) == REDISMODULE_OK; db++) {
        bool any = slots || RedisModule_DbSize(ckv.ctx) > 0;
        for (int i = 0; any && i < count; i++)
            if (!maps_at(db, homes[i])) map_home_look(ckv.ctx, db, homes[i], &s);
    }
}

/* False: none is left. */
static bool look_for_some(void) {
    uint32_t homes[MAPS_AT_ONCE];
    int count = 0;
    while (count < MAPS_AT_ONCE && maps_next_away(&homes[count])) count++;
    if (count > 0) look_for(homes, count);
    return count == MAPS_AT_ONCE;
}

void renamed_maps_step(void) {
    look_for_some();
}

void renamed_maps_find(void) {
    while (!places_are_slots() && look_for_some()) continue;
}
