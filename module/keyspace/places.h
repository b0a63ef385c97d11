/*
 * places.h: which map a key belongs to, and the Redis key that the map is the value of.
 *
 *      standalone   place = hash(stem) mod ckv.maps     "ckv:<place>"
 *      cluster      place = the key's slot              "ckv:{<tag>}", a tag of that slot
 *
 * Both are functions of the key alone, so that replicas, RDB files and other servers agree on them;
 * in a cluster, a map is in the slot of its records and moves with it.
 */
#ifndef CKV_PLACES_H
#define CKV_PLACES_H

#include "ckv.h"

/* A number of maps in a database; PLACES_SLOTS: one for every slot of a cluster. */
#define PLACES_SLOTS 0

/* Of a name: no record is looked up in it; of records: of several places. */
#define PLACES_NONE UINT32_MAX

/* Once, when the settings are known. */
void places_start(bool cluster);

/* How the maps of this server are placed: their number, or PLACES_SLOTS. */
uint32_t places_layout(void);
/* Whether it is in a cluster, with a map for each slot. */
bool places_are_slots(void);

/* How many databases maps of a cluster may be in: one, but with Valkey 9. */
int places_dbs(void);

uint32_t places_of_key(const void *key, size_t len);
uint32_t places_of_string(const RedisModuleString *key);

/* The name of a place's map; the caller frees it. */
RedisModuleString *places_name(uint32_t place);

/* The place that a Redis key's name stands for, or PLACES_NONE. */
uint32_t places_of_name(const RedisModuleString *name);

/* The same on a server of another layout, 0 < layout or PLACES_SLOTS. */
uint32_t places_of_name_in(const RedisModuleString *name, uint32_t layout);

/* The place that the records of a map have in a layout, as far as so many of each bucket can tell;
 * PLACES_NONE: they have several, or there are none. */
uint32_t places_of_map(map *m, uint32_t layout, uint64_t records_a_bucket);

#endif
