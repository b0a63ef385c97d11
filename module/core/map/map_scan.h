/*
 * map_scan.h: a way through a map that stays right while the map changes, and a record by chance.
 *
 * A position is a hash read backwards: the lowest bit of the hash is its highest. In that order
 * a bucket of linear hashing holds one stretch of positions, a split cuts a stretch in two halves
 * and a merge puts the halves together, so that a position separates what has been visited from
 * what has not whatever happened to the buckets in between:
 *
 *      4 buckets    |    0     |    2     |    1     |    3     |
 *      5 buckets    | 0  | 4   |    2     |    1     |    3     |
 *      position     0     ^ after bucket 0 of five              2^32
 *
 * (Redis' SCAN counts its cursor in the same order, for the same reason.)
 */
#ifndef CKV_MAP_SCAN_H
#define CKV_MAP_SCAN_H

#include "map/map.h"

#define MAP_SCAN_END (1ULL << 32) /* behind the last position */

/* Visits all records of the bucket at `position` (below MAP_SCAN_END); `each` does not change the
 * map. Returns the position behind the bucket. From 0 to MAP_SCAN_END, a record that is there all
 * the time is visited at least once. */
uint64_t map_scan(map *m, uint64_t position, map_visitor *each, void *context);

/* A position below MAP_SCAN_END read forwards, and the other way round: the fewer buckets there
 * are, the smaller a number. */
uint32_t map_scan_reversed(uint32_t position);

/* Visits one record of the bucket that a random number points to; none if the bucket is empty. */
void map_visit_random(map *m, uint64_t random, map_visitor *each, void *context);

#endif
