/*
 * map_save.h: a map's pages as bytes for a file, and back.
 *
 *      bucket:  [pages, 2 bytes][page][page]...
 *      page:    as in page.h without the free space: cap = used. Pointers to large records are
 *               zero; the records follow apart, in the order of the slots (map_each_large).
 *
 * The pages keep naming their codecs by the places of the server that saved them; the loader is
 * given a table from those to its own.
 */
#ifndef CKV_MAP_SAVE_H
#define CKV_MAP_SAVE_H

#include "map/map.h"

#define MAP_SAVE_NO_PLACE 255 /* in the table of places: there is no such codec */

/* Bytes that a bucket takes in a file. */
size_t map_bucket_size(map *m, uint32_t index);
/* Writes them; returns map_bucket_size(). */
size_t map_bucket_save(map *m, uint32_t index, uint8_t *dst);

/* Adds the next bucket to a map that is being loaded, from the front of src[0,n). Everything is
 * checked. Returns the bytes read, 0 if they are no bucket or memory ran out: free the map then.
 * The first call fills bucket 0. */
size_t map_bucket_load(map *m, uint32_t index, const uint8_t *src, size_t n,
                       const uint8_t places[256]);

/* Calls `each` for every large record of a bucket with the place of its pointer's payload. The
 * loader sets what is NULL. Stops when it returns false. */
typedef bool map_large_visitor(void *context, large **l);
bool map_each_large(map *m, uint32_t index, map_large_visitor *each, void *context);

/* A large record from a file: [key length, 4 bytes][key][encoded value]; n is checked.
 * NULL: damaged or out of memory. */
large *map_large_load(map *m, const uint8_t *src, size_t n);

#endif
