/*
 * bucket.h: the pages of one place in a map's directory.
 *
 *      +--------+--------+--------+
 *      | page * | page * | page * |   up to three pages, NULL behind the last
 *      +--------+--------+--------+
 *      +------------+-------+-----+
 *      | array  | 1 | count | --- |   more: an array of its own, told by the pointer's lowest bit
 *      +------------+-------+-----+
 *
 * Most buckets hold two or three pages, so the way from the directory to a page is one step.
 */
#ifndef CKV_BUCKET_H
#define CKV_BUCKET_H

#include "base/mem.h"
#include "map/page.h"

#define BUCKET_INLINE 3 /* pages */

typedef struct bucket {
    page *pages[BUCKET_INLINE];
} bucket;

/* The pages of a bucket, in no order that means anything, good until the bucket changes. */
static inline page **bucket_pages(bucket *b, uint32_t *count) {
    uintptr_t first = (uintptr_t)b->pages[0];
    if (first & 1) {
        *count = (uint32_t)(uintptr_t)b->pages[1];
        return (page **)(first & ~(uintptr_t)1);
    }
    *count = first == 0 ? 0 : b->pages[1] == NULL ? 1 : b->pages[2] == NULL ? 2 : 3;
    return b->pages;
}

/* Adds a page at the end; false (and nothing changed) when out of memory. */
bool bucket_add(const mem *m, bucket *b, page *p);

/* Takes the page at `index` out, without freeing it; the last one takes its place. Never fails. */
void bucket_remove(const mem *m, bucket *b, uint32_t index);

/* Frees the bucket's own memory, not the pages; it is empty then. */
void bucket_clear(const mem *m, bucket *b);

/* Memory of the bucket's own besides the directory, bytes, as the allocator sees it. */
size_t bucket_bytes(const mem *m, const bucket *b);

#endif
