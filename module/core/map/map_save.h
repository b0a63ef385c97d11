/*
 * map_save.h: a map's pages as bytes for a file, and back.
 *
 *      head:    [secret, 2 numbers][buckets][raw key bytes][raw value bytes]
 *      bucket:  [pages, 2 bytes][page][page]...
 *      page:    as in page.h without the free space: cap = used. Pointers to large records are
 *               zero; the records follow apart, in the order of the slots (map_each_large).
 *      large:   [key length, 4 bytes][key][encoded value]
 *
 * The pages keep naming their codecs by the ids of the server that saved them; the loader is
 * given a table from those to its own. A map that is being loaded belongs to no group.
 */
#ifndef CKV_MAP_SAVE_H
#define CKV_MAP_SAVE_H

#include "map/map.h"

#define MAP_SAVE_NO_CODEC 255 /* in the table of ids: there is no such codec */
#define MAP_BUCKETS_MAX   (UINT32_MAX / 2)

/* The numbers of a head, in their order. */
enum { MAP_HEAD_SECRET, MAP_HEAD_BUCKETS = 2, MAP_HEAD_KEY_BYTES, MAP_HEAD_VALUE_BYTES, MAP_HEAD };

void map_save_head(const map *m, uint64_t head[MAP_HEAD]);
/* A map without records, to which all of its buckets are to be loaded, and then
 * map_load_end(), which believes the raw bytes as far as the records may have them: to count them
 * would take decoding all. NULL: damaged or out of memory. */
map *map_load_head(map_shared *shared, const uint64_t head[MAP_HEAD]);
void map_load_end(map *m, const uint64_t head[MAP_HEAD]);

/* Adds the shapes of all keys of a map that was loaded without them to those that are kept. */
void map_add_shapes(map *m);

/* Marks the codecs that a map's pages name. */
void map_note_codecs(map *m, bool named[CODECS_MAX]);

/* Bytes that a bucket takes in a file. */
size_t map_bucket_size(map *m, uint32_t index);
/* Writes them; returns map_bucket_size(). */
size_t map_bucket_save(map *m, uint32_t index, uint8_t *dst);

/* Adds the next bucket to a map that is being loaded, from the front of src[0,n). Everything is
 * checked. Returns the bytes read, 0 if they are no bucket or memory ran out: free the map then.
 * The first call fills bucket 0. */
size_t map_bucket_load(map *m, uint32_t index, const uint8_t *src, size_t n,
                       const uint8_t codec_ids[256]);

size_t map_large_size(const large *l);
/* Writes map_large_size() bytes. */
void map_large_save(const large *l, uint8_t *dst);
/* A large record from a file, n bytes; all is checked. NULL: damaged or out of memory. */
large *map_large_load(map *m, const uint8_t *src, size_t n);

#endif
