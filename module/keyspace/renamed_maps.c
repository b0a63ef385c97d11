/* renamed_maps.c: see renamed_maps.h. */
#include "keyspace/renamed_maps.h"

#include "keyspace/map_home.h"
#include "keyspace/maps.h"
#include "keyspace/places.h"

#define MAPS_AT_ONCE 64

/* Whether a map that is away has come back under the name of its home. The size of a database says
 * nothing of slots that Valkey 9 is being sent. */
static void look_for(uint32_t home) {
    keyed_map *s;
    bool slots = places_are_slots();
    for (int db = 0; RedisModule_SelectDb(ckv.ctx, db) == REDISMODULE_OK; db++)
        if ((slots || RedisModule_DbSize(ckv.ctx) > 0) && !maps_at(db, home))
            map_home_look(ckv.ctx, db, home, &s);
}

void renamed_maps_step(void) {
    uint32_t home;
    for (int i = 0; i < MAPS_AT_ONCE && maps_next_away(&home); i++) look_for(home);
}

void renamed_maps_find(void) {
    uint32_t home;
    if (places_are_slots()) return;
    while (maps_next_away(&home)) look_for(home);
}
