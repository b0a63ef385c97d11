/*
 * cursor.h: a cursor of CSCAN: which map, and where in it.
 *
 *      47           p p-1    0
 *      +-------------+-------+
 *      | position    | place |    p bits for ckv.places; 0 is the start and the end
 *      +-------------+-------+
 *
 * The position is read forwards (core/map/map_scan.h), so that the number is small while there are
 * few buckets: there are clients that keep it in 32 bits (redis-cli --cluster import). Places are
 * fixed, positions stay right while buckets are split and merged, and records never leave their
 * bucket by themselves: what is there during the whole scan is met.
 */
#ifndef CKV_CURSOR_H
#define CKV_CURSOR_H

#include "ckv.h"

static inline unsigned cursor_place_bits(void) {
    return ckv.places > 1 ? 32u - (unsigned)__builtin_clz(ckv.places - 1) : 0;
}

static inline uint64_t cursor_make(uint32_t place, uint32_t position) {
    return (uint64_t)position << cursor_place_bits() | place;
}

static inline uint32_t cursor_place(uint64_t cursor) {
    return cursor & ((1u << cursor_place_bits()) - 1);
}

static inline uint32_t cursor_position(uint64_t cursor) {
    return (uint32_t)(cursor >> cursor_place_bits());
}

#endif
