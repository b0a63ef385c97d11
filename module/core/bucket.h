/*
 * bucket.h: the pages of one place in a map's directory, in one word.
 *
 *      0                          no page
 *      page *                     one page
 *      (page **) | n, n = 2..14   an array of n pages
 *      (page **) | 15             an array whose first word is the count, then the pages
 *
 * Blocks are 16-byte aligned, so four bits are free. Most buckets need no count of their own.
 */
#ifndef CKV_BUCKET_H
#define CKV_BUCKET_H

#include "mem.h"
#include "page.h"

typedef uintptr_t bucket;

/* The pages of a bucket, in no order that means anything, good until the bucket changes. */
page **bucket_pages(bucket *b, uint32_t *count);

/* Adds a page; false (and nothing changed) when out of memory. */
bool bucket_add(const mem *m, bucket *b, page *p);

/* Takes the page at `index` out, without freeing it. Never fails. */
void bucket_remove(const mem *m, bucket *b, uint32_t index);

/* Frees the bucket's own memory, not the pages. */
void bucket_clear(const mem *m, bucket *b);

/* Memory of the bucket's own, bytes, as the allocator sees it. */
size_t bucket_bytes(const mem *m, const bucket *b);

#endif
