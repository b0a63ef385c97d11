/* map_inside.h: what the files of map share among themselves. Which calls which: see map.h. */
#ifndef CKV_MAP_INSIDE_H
#define CKV_MAP_INSIDE_H

#include "map/map.h"

/* ---- where things lie ------------------------------------------------------------------------ */

static inline bucket *map_bucket(const map *m, uint32_t index) {
    if (index < MAP_SEGMENT) return &m->first[index];
    return &m->segments[index / MAP_SEGMENT - 1][index % MAP_SEGMENT];
}

/* Where the bucket has the page of a record: the page may come to lie elsewhere. */
static inline page **map_page_at(const map *m, const map_pos *pos) {
    uint32_t n;
    return &bucket_pages(map_bucket(m, pos->bucket_index), &n)[pos->page_index];
}

/* The id of the codec that is written with. */
static inline uint8_t map_codec(const map *m) {
    return codecs_current_id(&m->shared->codecs);
}

/* Where linear hashing puts a hash among `buckets`. */
static inline uint32_t map_index(uint64_t hash, uint32_t buckets) {
    uint32_t top = 1u << (31 - __builtin_clz(buckets));
    uint32_t index = (uint32_t)hash & (2 * top - 1);
    return index < buckets ? index : (uint32_t)hash & (top - 1);
}

static inline uint64_t map_at_most(uint64_t n, uint64_t most) {
    return n < most ? n : most;
}

/* ---- map_find.c ------------------------------------------------------------------------------ */

/* Where a key's record is to be looked for: the hash of its stem, which ends at *stem_len. */
uint64_t map_hash_key(const map *m, const void *key, size_t len, size_t *stem_len, uint8_t *suffix);

/* The same for the key of a large record; a long one is not hashed again. */
uint64_t map_hash_large(const map *m, large *l, size_t *stem_len, uint8_t *suffix);
/* The tag of its slot. */
uint8_t map_tag_of_large(const map *m, large *l);

/* The key as a codec encodes it. */
const page_key *map_encoded_key(const map *m, map_key *k, uint8_t codec);

/* Decodes the key of a single or member, or the stem of a head. Members need the head's stem in
 * `bytes` already. False: damaged. */
#define MAP_KEY_ROOM (MAP_KEY_MAX + 2)
bool map_read_key(const map *m, const page *p, uint32_t slot, uint8_t *bytes, size_t *stem_len,
                  size_t *len);

/* The key of a record, wherever it lies; `bytes` has MAP_KEY_ROOM. NULL: damaged. */
const uint8_t *map_key_of_slot(const map *m, const page *p, uint32_t slot, uint8_t *bytes,
                               size_t *len);

/* The encoded value of a record, wherever it lies. */
const uint8_t *map_encoded_value(const map_pos *pos, uint32_t *len);

/* ---- map_hot.c ------------------------------------------------------------------------------- */

/* The value of a record is about to go: if it is kept decoded, that goes as well. False: it is not
 * kept. */
bool map_forget_hot(map *m, const map_key *k, const map_pos *pos, size_t *len);

/* ---- map_pages.c ----------------------------------------------------------------------------- */

/* Room in the directory for one more bucket, an empty one. False: out of memory. */
bool map_add_bucket(map *m);
/* Takes the last bucket, whose pages are gone, out of the directory. */
void map_drop_bucket(map *m);

/* The largest page that is not whole, bytes. The class between the two is left out: a page that
 * grows passes it soon, and what the others leave behind there, four to a slab, was measured as 3%
 * of the RSS. */
#define PAGE_CAP_LAST 2560
/* The smallest of the sizes that pages have, which are size classes of jemalloc, four to a
 * doubling, that holds `bytes`. */
uint32_t map_page_cap(uint32_t bytes);

/* PAGE_USES, if new pages have use counts. */
uint8_t map_page_flags(const map *m);
/* A page that has been made comes to the end of a bucket. False: out of memory. */
bool map_take_page(map *m, bucket *b, page *p);
/* A new page of so many bytes at the end of a bucket. NULL: out of memory. */
page **map_add_page(map *m, bucket *b, uint8_t codec, uint32_t bytes);
/* A page goes to `old`, for the caller to free; NULL: it is freed at once. The large records that
 * it points to stay. */
void map_remove_page(map *m, bucket *b, uint32_t index, mem_retired *old);
/* The same for one that is in no bucket any more. */
void map_drop_page(map *m, page *p, mem_retired *old);
/* Another page takes its place. */
void map_replace_page(map *m, page **at, page *by, mem_retired *old);

/* Makes room for `grown` more bytes (they fit PAGE_BYTES). False: out of memory. */
bool map_make_room(map *m, page **at, int grown);
/* Gives back what a page does not need, if that is much. */
void map_trim_page(map *m, page **at);
/* Gives back what the pages of a bucket that is complete do not need. */
void map_trim_bucket(map *m, bucket *b);

uint64_t map_bucket_records(const map *m, uint32_t index);

/* Counts a large record that a page points to from now on. */
void map_count_large(map *m, large *l);
/* Frees one that is counted. */
void map_free_large(map *m, large *l);

/* ---- map_young.c ----------------------------------------------------------------------------- */

/* A map that is in a group and has something to encode is in the ring of those; one that leaves its
 * group is not. */
void map_young_part(map *m);

/* A young record that is counted comes to the end of its map's list, or leaves it. Its block has so
 * many bytes. */
void map_young_enter(map *m, large *l, size_t bytes);
void map_young_leave(map *m, large *l, size_t bytes);
/* It is elsewhere now, in a block of `grown` more bytes. */
void map_young_moved(map *m, const large *before, large *now, size_t grown);

/* All of them are to be encoded, also what was taken into a batch. */
void map_young_restart(map *m);
/* It goes to the end of the list. */
void map_young_again(map *m, large *l, uint64_t since);

/* Makes the allocation of a young record; `base` is now, ticks, 0: nobody has written it now. NULL:
 * out of memory. */
large *map_young_new(const map *m, const map_key *k, const uint8_t *value, size_t n, uint64_t base);
/* Whether its block is of the right size for a value of n bytes, */
bool map_young_fits(const map *m, large *l, size_t n);
/* which is written over the one that it has. */
void map_young_rewrite(map *m, large *l, const uint8_t *value, size_t n);

/* ---- map_uncounted.c ------------------------------------------------------------------------- */

/* Before a map's sums are looked at and changed: an exchange changes them, too. */
static inline void map_exchange(const map *m) {
    if (m->shared->uncounted.full) m->shared->uncounted.exchange();
}

/* A value, which a codec has encoded as n bytes, is about to go out of a map, whose raw bytes it
 * stays in. False: it does not, it is to be counted at once. */
bool uncounted_note(map *m, uint8_t codec, const uint8_t *encoded, size_t n);
/* What was noted last stays after all. */
void uncounted_undo(map_shared *s);

/* ---- map_place.c ----------------------------------------------------------------------------- */

/* A record on its way into a bucket. */
typedef struct map_record {
    const uint8_t *value; /* encoded with the codec of the page that it comes into */
    uint32_t value_len;
    large *large; /* not NULL: instead of the value */
    bool fast;    /* the value, as codec_value has it */
    uint16_t code;
    uint64_t base;
    uint8_t uses; /* page_uses(); kept if the page has room for counts */
} map_record;

/* Whether a record has to live outside of the pages. */
bool map_is_large(const page_key *k, size_t value_len);

/* Makes the allocation of a large record. NULL: out of memory. */
large *map_large_new(const map *m, const map_key *k, const uint8_t *value, size_t value_len);
/* The same for one from a file, where it may have been young. */
large *map_large_loaded(const map *m, const map_key *k, const uint8_t *value, size_t value_len);

/* Where a record may be put. */
typedef struct map_target {
    bucket *b;
    uint8_t codec;      /* of the page; the value is encoded with it */
    const page *avoid;  /* not into this page of it; may be NULL */
    uint32_t page_room; /* a page that is added gets so many bytes at least */
    uint32_t cut;       /* from this page of it on, counted from 1, none takes more records than
                           fit PAGE_CAP_LAST; 0: all take PAGE_BYTES */
} map_target;

/* The base that a page is given when it is written to at `base`. */
uint64_t map_base_of(const map *m, const page *p, uint64_t base);

/* The record of a slot as it is. */
map_record map_record_of(const page_walk *at);

/* Puts a record that is not there yet into a page: that of its stem, or one whose block grows
 * least. Returns where the bucket has that page, and the record's slot. NULL: out of memory. */
page **map_place(map *m, const map_target *to, map_key *k, const map_record *r, uint32_t *slot);

/* Copies the slots of another page that may stand behind a record which was placed: as many as its
 * page takes as they are. Returns how many. */
uint32_t map_place_behind(map *m, const map_target *to, page **at, uint32_t slot, const page *from,
                          uint32_t first, uint32_t count);

/* Writes over a record where it is, if it stays in a page of the current codec with room for it.
 * False if it can't. */
bool map_overwrite(map *m, const page_key *pk, const map_pos *pos, const map_record *r);

/* ---- map_move.c ------------------------------------------------------------------------------ */

/* Reads the keys of a page's records, one after the other. */
typedef struct map_keys {
    const map *m;
    map_key key;                 /* of the slot that was read last */
    uint8_t bytes[MAP_KEY_ROOM]; /* that key, if it is not a large record's */
    size_t stem_len;
} map_keys;

/* Reads the key, or the stem of a head; what the page has encoded of it is not encoded again. */
bool map_keys_read(map_keys *keys, const page_walk *at);

/* Moves a record, as it is, to another page of its bucket, where it gets another expiry. False: out
 * of memory, nothing changed. */
bool map_move(map *m, map_key *k, const map_pos *pos, uint16_t code, uint64_t base);

/* Takes a record out of its page; the bucket may have a page less afterwards, or the page be
 * elsewhere; the pages before it are as they were. A large record stays. */
void map_remove_slot(map *m, const map_pos *pos);

/* ---- map_rebuild.c --------------------------------------------------------------------------- */

/* Whether all pages of a bucket are of the current codec. */
bool map_all_current(const map *m, uint32_t index);

/* Writes a bucket anew, in the background, if its pages hold less than they could. */
void map_compact(map *m, uint32_t bucket_index, uint64_t now_ticks, mem_retired *old);

/* Whether a bucket is to be split while all is encoded anew. */
bool map_is_crowded(const map *m);
/* Splits one. False: out of memory or damaged, it is not split. */
bool map_split(map *m, uint64_t now_ticks, mem_retired *old);

/* Whether two buckets are to be merged while all is encoded anew. */
bool map_is_sparse(const map *m);
/* Merges the last bucket, of more than one, into another. Not if it has pages of an old codec: who
 * brings one bucket after the other to the current codec may have come by the other already. False:
 * it is not merged. */
bool map_merge(map *m, uint64_t now_ticks, mem_retired *old);

/* Splits a bucket of the map if it has grown; merges two if it has shrunk; compacts this one if
 * its pages hold much less than they could. What fails for want of memory is not done. */
void map_balance(map *m, uint32_t bucket_index, uint64_t now_ticks);

/* ---- map_group.c ----------------------------------------------------------------------------- */

/* How much a map holds. Whoever changes that takes note of it before, and tells the map's group
 * afterwards. */
typedef struct map_size {
    map_totals totals;
    uint32_t buckets;
} map_size;

static inline map_size map_size_now(const map *m) {
    return (map_size){m->totals, m->buckets};
}
void map_tell_group(const map *m, const map_size *before);

/* ---- map.c ----------------------------------------------------------------------------------- */

/* Takes a record out of its page; its bytes, and large ones too, are gone. The bucket may have a
 * page less afterwards, or the page be elsewhere; the pages before it are as they were. The group
 * is not told. */
void map_take_out(map *m, size_t key_len, const map_pos *pos);

#endif
