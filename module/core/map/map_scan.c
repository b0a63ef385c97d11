/* map_scan.c: a way through a map that may change. See map_scan.h. */
#include "map/map_scan.h"

#include "map/map_inside.h"

uint32_t map_scan_reversed(uint32_t v) {
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(v);
}

/* Bits of the hash that all records of a bucket have in common: one more where it has been split,
 * or come from a split, since the number of buckets was a power of two. */
static unsigned common_bits(uint32_t index, uint32_t buckets) {
    unsigned bits = 31u - (unsigned)__builtin_clz(buckets);
    uint32_t top = 1u << bits;
    return index >= top || index + top < buckets ? bits + 1 : bits;
}

uint64_t map_scan(map *m, uint64_t position, map_visitor *each, void *context) {
    uint32_t index = map_index(map_scan_reversed((uint32_t)position), m->buckets);
    uint64_t stretch = MAP_SCAN_END >> common_bits(index, m->buckets);
    map_each(m, index, each, context);
    return (position & ~(stretch - 1)) + stretch;
}

/* ---- by chance ------------------------------------------------------------------------------- */

typedef struct picking {
    uint64_t left; /* records before the one that is wanted */
    map_visitor *each;
    void *context;
} picking;

static bool pick(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    picking *p = context;
    if (p->left-- > 0) return true;
    p->each(p->context, key, key_len, pos);
    return false;
}

void map_visit_random(map *m, uint64_t random, map_visitor *each, void *context) {
    uint32_t index = (uint32_t)(random % m->buckets);
    uint64_t records = map_bucket_records(m, index);
    if (records == 0) return;
    picking p = {(random / m->buckets) % records, each, context};
    map_each(m, index, pick, &p);
}
