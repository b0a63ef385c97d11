/* map_inside.h: what the files of map share among themselves. */
#ifndef CKV_MAP_INSIDE_H
#define CKV_MAP_INSIDE_H

#include "map/map.h"

/* A record on its way into a bucket. */
typedef struct map_record {
    const uint8_t *value; /* encoded with the current codec */
    uint32_t value_len;
    large *large; /* not NULL: instead of the value */
    uint16_t code;
    uint64_t base;
    uint8_t uses; /* page_uses(); kept if the page has room for counts */
} map_record;

static inline bucket *map_bucket(const map *m, uint32_t index) {
    if (index < MAP_SEGMENT) return &m->first[index];
    return &m->segments[index / MAP_SEGMENT - 1][index % MAP_SEGMENT];
}

/* Where linear hashing puts a hash among `buckets`. */
static inline uint32_t map_index(uint64_t hash, uint32_t buckets) {
    uint32_t top = 1u << (31 - __builtin_clz(buckets));
    uint32_t index = (uint32_t)hash & (2 * top - 1);
    return index < buckets ? index : (uint32_t)hash & (top - 1);
}

/* The key as the codec of a page encodes it. */
const page_key *map_encoded_key(const map *m, map_key *k, uint8_t place);

/* Whether a record has to live outside of the pages. */
bool map_is_large(const page_key *k, size_t value_len);

/* Makes the allocation of a large record. NULL: out of memory. */
large *map_large_new(const map *m, const map_key *k, const uint8_t *value, size_t value_len);

/* The smallest of the sizes that pages have, which are size classes of jemalloc, four to a
 * doubling, that holds `bytes`. */
uint32_t map_page_cap(uint32_t bytes);

/* Room in the directory for one more bucket, an empty one. False: out of memory. */
bool map_add_bucket(map *m);

/* Where a record may be put. */
typedef struct map_target {
    bucket *b;
    const page *avoid;  /* not into this page of it; may be NULL */
    uint32_t page_room; /* a page that is added gets so many bytes at least */
} map_target;

/* Puts a record that is not there yet into a page. Returns where the bucket has that page, and the
 * record's slot. NULL: out of memory. */
page **map_place(map *m, const map_target *to, map_key *k, const map_record *r, uint32_t *slot);

/* Copies the slots of another page that may stand behind a record which was placed: as many as its
 * page takes as they are. Returns how many. */
uint32_t map_place_behind(map *m, page **at, uint32_t slot, const page *from, uint32_t first,
                          uint32_t count);

/* Gives back what the pages of a bucket that is complete do not need. */
void map_trim_bucket(map *m, bucket *b);

/* Takes a record out of its page; its bytes, and large ones too, are gone. The bucket may have a
 * page less afterwards, or the page be elsewhere; the pages before it are as they were. */
void map_take_out(map *m, size_t key_len, const map_pos *pos);

/* Frees a bucket's pages and large records. */
void map_free_bucket(map *m, bucket *b);

/* Splits a bucket of the map if it has grown; merges two if it has shrunk; compacts this one if
 * its pages hold much less than they could. What fails for want of memory is not done. */
void map_balance(map *m, uint32_t bucket_index, uint64_t now_ticks);

/* Decodes the key of a single or member, or the stem of a head. Members need the head's stem in
 * `bytes` already. False: damaged. */
#define MAP_KEY_ROOM (MAP_KEY_MAX + 2)
bool map_read_key(const map *m, const page *p, uint32_t slot, uint8_t *bytes, size_t *stem_len,
                  size_t *len);

/* The key of a record, wherever it lies; `bytes` has MAP_KEY_ROOM. NULL: damaged. */
const uint8_t *map_key_of_slot(const map *m, const page *p, uint32_t slot, uint8_t *bytes,
                               size_t *len);

#endif
