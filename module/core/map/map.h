/*
 * map.h: many records, found by key, packed into pages.
 *
 *      first     bucket 0       bucket 1
 *      +---+    +---+---+---+  +---+---+---+
 *      | o----->| o | o | - |  | o | - | - | ...
 *      +---+    +-|-+-|-+---+  +-|-+---+---+
 *                 v   v          v
 *              +------+ +-----+ +------+
 *              | 3584 | | 640 | | 3584 |           pages
 *              +------+ +-----+ +------+
 *      segments +---+---+
 *      -------->| o | o | ... 512 more buckets each
 *               +---+---+
 *
 * Buckets are chosen by linear hashing (Litwin 1980) on the keyed hash of a key's stem: when
 * the pages hold more than MAP_BUCKET_BYTES a bucket on average, one bucket is split, so no
 * operation pauses for more than moving the records of one bucket, which copies pages and touches
 * no large record. All pages of a bucket but one are nearly full, and that one is of a finer size
 * class.
 *
 * New records are always written with the current codec. Older pages keep theirs until
 * map_reencode() comes by, which works record by record. Everything else that moves more than one
 * record (split, merge, compaction) is one function, rebuild(), in map_rebuild.c. The files, each
 * of which calls those before it only: map_shared.c, map_find.c, map_hot.c, map_uncounted.c,
 * map_young.c, map_pages.c, map_place.c, map_move.c, map_rebuild.c, map_group.c, map.c, and then
 * one for each thing that is done with a whole bucket or map.
 *
 * Not for use by two threads at a time. Functions that can run out of memory say so and have then
 * changed nothing.
 */
#ifndef CKV_MAP_H
#define CKV_MAP_H

#include "map/bucket.h"
#include "map/large.h"
#include "map/map_shared.h"

#define MAP_BUCKET_BYTES 10240      /* average bytes of pages a bucket, before one is split */
#define MAP_SEGMENT      512        /* buckets */
#define MAP_LARGE_BYTES  256        /* what a large record counts as beside its slot in a page */
#define MAP_RECORD_MAX   (1u << 30) /* bytes of key and value; more is not stored */
#define MAP_KEY_MAX      LARGE_LONG_KEY /* bytes; a record with a longer key is large */

typedef struct map_totals {
    uint64_t records;
    uint64_t expiring;               /* of them, with an expiry */
    uint64_t key_bytes, value_bytes; /* raw */
    uint64_t pages, page_bytes;      /* caps */
    uint64_t large, large_bytes;     /* records outside of pages; bytes as allocated */
    uint64_t young, young_bytes;     /* of them, not encoded yet (map_settle.h) */
} map_totals;

/* What several maps hold together, kept up to date by each of them. 0 at first. */
typedef struct map_group {
    map_totals totals;
    uint64_t maps, buckets;
} map_group;

typedef struct map {
    map_shared *shared;
    uint64_t secret[2]; /* of the hash */
    bucket *first;      /* the first segment: most maps need no other */
    bucket **segments;  /* the others, from the second one; NULL: none */
    uint32_t buckets;
    map_totals totals;
    map_group *group; /* NULL: none */
    /* The young records (map_settle.h), and the first of them that is not in a batch. */
    large *oldest, *newest, *to_encode;
    struct map *ring_before, *ring_after; /* NULL: it is not in the ring of those that have such */
    uint64_t owner;                       /* whoever put it into its group knows it by that */
} map;

/* A key on its way to its record. Refers to the caller's bytes. */
typedef struct map_key {
    const uint8_t *key;
    size_t len, stem_len;
    uint64_t hash;
    uint8_t suffix;
    uint8_t next; /* which of `encoded` is overwritten next */
    uint8_t uses; /* that writing the record counts as, see map_note_use() */
    struct {
        int codec; /* its id; -1: empty */
        page_key found;
        uint8_t stem[PAGE_KEY_MAX];
    } encoded[2];
} map_key;

/* Where a record is, good until its map changes. */
typedef struct map_pos {
    page *p;
    uint32_t slot;
    uint32_t page_index; /* of the page in its bucket */
    uint32_t bucket_index;
    uint32_t len_known; /* 1 + length of its value, for who has decoded it; 0: nobody has */
} map_pos;

/* NULL: out of memory. */
map *map_new(map_shared *shared, const uint64_t secret[2]);
/* Frees the map, which is in no group, and all records; needs no codec, may run on any thread. */
void map_free(map *m);

/* A map is in one group at most, whose sums follow every change of the map from then on. */
void map_join(map *m, map_group *group);
void map_leave(map *m);
/* Adds what another group holds. */
void map_group_add(map_group *g, const map_group *more);

/* Memory of the whole map, bytes, as the allocator sees it. */
size_t map_bytes(const map *m);
/* Of that what pages and large records take. */
static inline uint64_t map_record_bytes(const map_totals *t) {
    return t->page_bytes + t->large_bytes;
}

/* Starts to look for a key: the memory that the look-up will need is asked for, and arrives while
 * the caller does something else. */
void map_key_init(map *m, map_key *k, const void *key, size_t len);

/* Finds a record, expired or not. */
bool map_find(map *m, map_key *k, map_pos *pos);

/* The record's value: bytes good until the next call for any map that shares its workspace.
 * NULL: out of memory, or the bytes are damaged. */
const uint8_t *map_value(map *m, const map_pos *pos, size_t *len);
/* The same, for whoever only reads the record of a key and is done with the bytes then: what is
 * read again and again need not be decoded each time (hot.h). */
const uint8_t *map_read(map *m, const map_key *k, const map_pos *pos, size_t *len);
/* Its length alone. */
size_t map_value_len(map *m, const map_pos *pos);

/* When the record expires, in ms: EXPIRY_NEVER if it never does. */
int64_t map_expiry_ms(const map_pos *pos);
/* The same as it may be told to who asks: never later than was asked for (expiry.h). */
int64_t map_expiry_told_ms(const map_pos *pos);
/* The same as a code relative to `base`, for writing the record again. */
uint16_t map_expiry_code(const map_pos *pos, uint64_t base);
/* How often it was used lately, as far as that is counted. */
uint8_t map_uses(const map_pos *pos);

/* Writes a record; `pos` is where map_find() found it, or NULL if it did not. The expiry is
 * a code relative to `base` (ticks), which is now. False: out of memory, nothing changed. */
bool map_put(map *m, map_key *k, const map_pos *pos, const codec_value *value, uint16_t code,
             uint64_t base);

/* Encodes a value and writes it under a key, over what is there: for records from files. Times are
 * ms. False: out of memory, nothing changed. */
bool map_store(map *m, const void *key, size_t len, const void *value, size_t value_len,
               int64_t at_ms, int64_t now_ms);
/* The same with the expiry as map_expiry_code() gave it. */
bool map_store_code(map *m, const void *key, size_t len, const void *value, size_t value_len,
                    uint16_t code, uint64_t base);

/* Counts a use of the record, for map_evict(). A count is a hint: where there is no room for it, or
 * no memory, it is forgotten. */
void map_note_use(map *m, map_pos *pos);

/* Gives a record another expiry. False: out of memory, nothing changed. */
bool map_set_expiry(map *m, map_key *k, const map_pos *pos, uint16_t code, uint64_t base);

void map_delete(map *m, const map_key *k, const map_pos *pos, uint64_t now_ticks);

/* Told of each record that the map takes out by itself, before it goes; the key's bytes are good
 * during the call. */
typedef void map_gone(void *context, const uint8_t *key, size_t key_len);

/* Calls `each` for the records of one bucket; key and pos are good during the call, which must not
 * change the map. Stops when it returns false. */
typedef bool map_visitor(void *context, const uint8_t *key, size_t key_len, const map_pos *pos);
bool map_each(map *m, uint32_t bucket_index, map_visitor *each, void *context);
/* For all records of a map; false: it was stopped. */
bool map_each_record(map *m, map_visitor *each, void *context);

/* Calls `each` for every large record of a bucket, which may replace the pointer to it: NULL, in a
 * map that is being loaded, until then. Stops when it returns false. */
typedef bool map_large_visitor(void *context, large **l);
bool map_each_large(map *m, uint32_t bucket_index, map_large_visitor *each, void *context);

/* Every invariant of map and pages. */
bool map_sane(map *m);

#endif
