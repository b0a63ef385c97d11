/*
 * map_reencode.h: bringing the records of a map to the current codec, a few at a time.
 *
 * A record leaves its page, whose codec is an old one, for a page of the current codec in the same
 * bucket. In between the bucket is as good as any: what is left to do is what lies in old pages.
 * Values that are the same for all codecs (codec_is_common) move as they are; so no record takes
 * longer than encoding CODEC_PHRASE_MAX bytes does. Other large ones become young (map_settle.h)
 * where values may: another thread encodes them.
 */
#ifndef CKV_MAP_REENCODE_H
#define CKV_MAP_REENCODE_H

#include "map/map.h"

typedef enum map_step {
    MAP_DONE,
    MAP_MORE,   /* there is more to do: call again, with map_bucket_or_last() */
    MAP_WAITS,  /* the same, when some values are young no longer */
    MAP_FAILED, /* out of memory or damaged: some records keep their codec */
} map_step;

/* What a record is counted as beside the bytes of its value. */
#define MAP_RECORD_WORK 128

/* Brings one bucket to the current codec, and merges or splits others if the map has got smaller or
 * larger by what was brought: the number of buckets may go down, and `bucket_index` with it. Stops
 * before it has worked on more than `work` bytes, unless one record is more. The pages that they
 * were go to `old`, for the caller to free (NULL: they are freed at once). */
map_step map_reencode(map *m, uint32_t bucket_index, uint64_t now_ticks, size_t work,
                      mem_retired *old);

/* Makes the large values young that pages of old codecs in a bucket point to, where values may be:
 * then nothing of such a page hangs on its codec but what lies in it, and another thread can write
 * it anew (map_recode.h). Stops before it has worked on more than `work` bytes, unless one value is
 * more. What is damaged, or there is no memory for, stays as it is. */
map_step map_make_young(map *m, uint32_t bucket_index, size_t work);

/* That bucket, or where it has been merged into another meanwhile, the last one. */
static inline uint32_t map_bucket_or_last(const map *m, uint32_t bucket_index) {
    return bucket_index < m->buckets ? bucket_index : m->buckets - 1;
}

#endif
