/*
 * rdb.h: ckv in an RDB file and in a DUMP.
 *
 * A file: the codecs come first, as auxiliary data, then every map as its pages are; loading and
 * saving are copies. A payload that leaves the server by itself (DUMP, MIGRATE) can't count on
 * the other side's codecs: a large map has those along that its pages name, a small one carries
 * plain records, packed by zstd. The saver knows which it is because the auxiliary data is saved
 * before the keys of a file and never for a DUMP.
 *
 *      auxiliary:  [format][layout][codecs, see saved_codecs.h]
 *                  from format 2 on [prefixes][shapes of the keys, see key_shapes.h]
 *                  (prefixes: "those that serve\nthose that are leaving", between blanks; a blank
 *                  in the line's end's place in older files)
 *                  and [0] behind the keys; the layout of the maps is in places.h
 *      map:        [kind] and then
 *      pages:      [head of the map, see map_save.h]
 *                  ([buckets in it][large records][bytes, see map_save.h][large record]...)...
 *      whole:      [format][codecs, see saved_codecs.h] and pages
 *      records:    ([raw bytes][zstd: (key length, value length, at ms, key, value)...])... [0]
 */
#ifndef CKV_RDB_H
#define CKV_RDB_H

#include "redismodule.h"

/* The formats of auxiliary data and maps, which have nothing to do with the module's version. A
 * file of a newer one is refused; each is written in the oldest that can say it, so that older
 * modules read what they can serve. */
#define RDB_FORMAT_FIRST    1
#define RDB_FORMAT_PREFIXES 2 /* strings under prefixes are among the records */
#define RDB_FORMAT_COPIES   3 /* phrases may be copies, see phrase_copy.h */
#define RDB_FORMAT_KINDS    4 /* values are of several kinds, see codec_file.h */
#define RDB_FORMAT          RDB_FORMAT_KINDS
#define RDB_TYPE_NAME       "ckv-map-1" /* nine characters, for ever */
#define RDB_TYPE_VERSION    1

void *rdb_load_map(RedisModuleIO *io, int version);
void rdb_save_map(RedisModuleIO *io, void *value);
void rdb_save_aux(RedisModuleIO *io, int when);
/* The same for servers that let auxiliary data be left out: nothing is written where there are no
 * records, and the file loads without the module. */
void rdb_save_optional_aux(RedisModuleIO *io, int when);
int rdb_load_aux(RedisModuleIO *io, int version, int when);
/* Saving a file has come to its end, well or not: a failed one has no last auxiliary data. */
void rdb_saving_ended(void);
void rdb_loading_began(void);
/* Well or not. */
void rdb_loading_ended(void);

#endif
