/*
 * map_recode.h: pages that another thread writes anew: of an old codec, or with values that were
 * encoded fast.
 *
 *      recode_fill() ----> batch ----> recode_page()    any thread
 *      recode_put()  <----       <----
 *
 * Nearly all of what it takes to bring a record to another codec is to decode and encode it; which
 * slots a page has, their tags, expiry and uses are the same in every codec. So copies of pages are
 * written anew aside, and a page that nobody has written to meanwhile (how often its records were
 * used aside) is replaced by what came of its copy: a page, or two. A batch knows nothing of the
 * map, which may change or be freed while a thread has it.
 *
 * What is left to map_reencode(): pages that would be more than two then, and those that point to
 * large values which the codec matters to, if these are not made young before (map_make_young()).
 */
#ifndef CKV_MAP_RECODE_H
#define CKV_MAP_RECODE_H

#include "map/map.h"

#define RECODE_PAGES 16 /* in a batch */

/* A page that was copied, and what becomes of it. */
typedef struct recode_item {
    uint64_t owner; /* of the map */
    uint32_t bucket;
    const page *was;   /* where it lies; only compared */
    const codec *from; /* kept as long as the batch has it */
    uint32_t becomes;  /* so many pages, which are written; 0: it is not */
} recode_item;

/* Belongs to one thread at a time. */
typedef struct recode_batch {
    const codec *to; /* kept as long as the batch is there */
    uint8_t codec;   /* its id */
    codec_effort effort;
    uint32_t count;
    uint32_t left; /* pages of old codecs that were met and can't be written anew so */
    recode_item items[RECODE_PAGES];
    _Alignas(page) uint8_t copies[RECODE_PAGES][PAGE_BYTES];
    _Alignas(page) uint8_t anew[RECODE_PAGES][2][PAGE_BYTES];
} recode_batch;

/* An empty batch for the current codec. */
void recode_begin(recode_batch *b, map_shared *shared);
/* Done with. */
void recode_end(recode_batch *b, map_shared *shared);

/* Copies the pages of a bucket that can be written anew so, and counts the others. False: there is
 * no room for them in a batch that has others. */
bool recode_fill(recode_batch *b, map *m, uint32_t bucket_index);

/* Writes one anew. Any thread, with a workspace of its own. */
void recode_page(recode_batch *b, uint32_t i, codec_workspace *w);

/* Puts what came of it into the map that it was taken from, in the page's place, if that is as it
 * was and the codec is still the current one. The page that it was goes to `old` (NULL: it is freed
 * at once). False: it is not put there. */
bool recode_put(const recode_batch *b, uint32_t i, map *m, uint64_t now_ticks, mem_retired *old);

/* Bytes in use of the page that was copied; of what it has become. */
uint32_t recode_used_before(const recode_batch *b, uint32_t i);
uint32_t recode_used_now(const recode_batch *b, uint32_t i);

#endif
