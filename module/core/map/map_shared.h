/*
 * map_shared.h: what all maps of a server share: where memory comes from, the codecs, room to
 * encode and decode in, and how pages are made.
 *
 * It belongs to one thread, as the maps do. Other threads that encode use its codecs, with a
 * workspace of their own.
 */
#ifndef CKV_MAP_SHARED_H
#define CKV_MAP_SHARED_H

#include "codec/codecs.h"
#include "map/hot.h"
#include "map/key_shapes.h"
#include "map/uncounted.h"
#include "map/young.h"

typedef struct map_shared {
    const mem *mem;
    codecs codecs;
    codec_workspace work;
    bool count_uses;   /* new pages have use counts, for map_evict.h */
    key_shapes shapes; /* of all records */
    young_state young;
    hot_values hot; /* they make room for young ones */
    uncounted_values uncounted;
    /* Another's clock says what has expired: times that have passed by ours are kept. */
    bool follows;
} map_shared;

/* False: out of memory. */
bool map_shared_init(map_shared *s, const mem *m, int zstd_level);
/* When there are no maps any more. */
void map_shared_free(map_shared *s);

/* Gives back the room that giant values took; to be called now and then (workspace_trim). */
void map_shared_trim(map_shared *s);
/* The same at once, for want of memory; returns the bytes (workspace_shrink). */
size_t map_shared_shrink(map_shared *s);
/* Of an empty store: frees everything that has been learned and kept for work to come. Hot values
 * may be so many that they go by and by: map_shared_keep_hot(). */
void map_shared_clear(map_shared *s);

/* How much may be taken by values that are decoded again and again, where all records take `stored`
 * bytes; 0: nothing. What is too much goes by and by. */
void map_shared_keep_hot(map_shared *s, uint64_t stored);

/* Whether there is room for a young value of n bytes, be it a hot one's. */
bool map_make_young_room(map_shared *s, size_t n);
/* Makes of a new value what map_put() takes: young, if it may be and there is room, else encoded,
 * of which the codecs take note. The bytes are good until the next new value, or are the caller's
 * own. False: out of memory. */
bool map_encode(map_shared *s, const void *value, size_t n, codec_value *out);
/* The same for a value that is not to be young. */
bool map_encode_now(map_shared *s, const void *value, size_t n, codec_value *out);

#endif
