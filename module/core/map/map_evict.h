/*
 * map_evict.h: taking out the records that will be missed least, to make room.
 *
 * Whoever wants room comes by one bucket after another and takes a quarter of the records of
 * each. A bucket holds a few hundred records that a hash has thrown together, so the worst of a
 * bucket are a good sample of the worst of all.
 *
 * How often a record is used is counted in two bits (page.h), and only records whose count is 0 are
 * taken. Where there are too few of them, all counts of the bucket go down by one, once in four
 * times: a CLOCK with counters, whose hand moves by buckets (GCLOCK, Smith 1978). What the counts
 * begin with tells LRU from LFU: a record that starts at 1 outlives those that have not been used
 * since the hand came by; one that starts at 0 has to be read before it is worth more than another.
 * docs/design.md has hit rates.
 *
 * What expires soonest is found the same way: only records that expire within a horizon are taken,
 * and it moves away when hardly any bucket has enough of them. Neighbours often expire together, so
 * what is soonest in a bucket may be late among all.
 */
#ifndef CKV_MAP_EVICT_H
#define CKV_MAP_EVICT_H

#include "map/map.h"

typedef enum map_evict_order {
    MAP_EVICT_LEAST_USED,
    MAP_EVICT_RANDOM,
    MAP_EVICT_FIRST_TO_EXPIRE,
} map_evict_order;

/* What the caller wants, and what map_evict() remembers from one call to the next: 0 at first. */
typedef struct map_eviction {
    map_evict_order order;
    bool expiring_only; /* leave records without an expiry alone */
    int64_t now_ms;     /* what has expired by then goes first */
    uint64_t random;    /* changes with every call */
    double scarcity;    /* share of the buckets, lately, that had too few to take */
    double horizon_ms;  /* from now */
} map_eviction;

#define MAP_EVICT_MAX   128         /* records in one call */
#define MAP_EVICT_BYTES (64u << 10) /* of large records in one call, and what the last one has */

/* So many times around all buckets, and at least so many calls, without taking out any record:
 * there is none that may go. */
#define MAP_EVICT_ROUNDS (PAGE_USES_MAX + 1)
#define MAP_EVICT_CALLS  1000

/* Takes out a quarter of a bucket's records, one at least, MAP_EVICT_MAX at most, and fewer if
 * these are large; returns how many it took: 0 if there are none that may go, or none before the
 * hand comes by again. */
uint32_t map_evict(map *m, uint32_t bucket_index, map_eviction *how, map_gone *told, void *context);

#endif
