/*
 * map_settle.h: values of a map that are not encoded yet, and how they come to be.
 *
 *      map_put() ----> young ----> young_batch_fill() --> batch ----> young_batch_encode()
 *                        ^                                              |  any thread
 *                        |  written over meanwhile,                     v
 *                        +------------------------------------ map_settle() ----> settled
 *
 * To encode a long value takes ten times as long as to store it. So a record with one is stored as
 * it came, in an allocation of its own (large.h): it is young. Whatever is done with records
 * is done with young ones as well, and in a file they are what they are in memory: large records
 * whose encoding is the value itself, as every version reads them.
 *
 * The young of a map are a list, the oldest first. Copies of the oldest are put into a batch,
 * which knows nothing of the map: the map may be written to, or be freed, while a thread encodes
 * it. Each value has a number. A result is taken only if the key still has a young record with
 * that very number. A map that joins a group begins anew: what was taken before is not coming back.
 *
 * What was written or read since it came to its place in the list goes to the end instead of into
 * a batch, once (CLOCK).
 */
#ifndef CKV_MAP_SETTLE_H
#define CKV_MAP_SETTLE_H

#include "map/map.h"

/* A batch has so many bytes of keys and values; a longer one is a batch of its own. */
#define YOUNG_BATCH_BYTES (128u << 10)
#define YOUNG_BATCH_ITEMS 128

/* A copy of a young record. */
typedef struct young_item {
    uint64_t owner;  /* the map's */
    uint64_t number; /* of the value */
    size_t at;       /* in the batch's bytes: the key, and its value behind it */
    uint32_t key_len, raw_len;
    uint32_t len; /* of the encoded value, 0: there is none */
    float expected_len;
    bool moved; /* as the record's tail has it */
    bool fast;  /* as codec_value has it */
} young_item;

/* Belongs to one thread at a time. */
typedef struct young_batch {
    const mem *mem;
    const codec *with; /* kept as long as the batch has it */
    uint8_t codec;     /* its id */
    codec_effort effort;
    uint32_t count;
    size_t used, cap, most; /* bytes: copied, that there is room for, that there may be room for */
    uint8_t *bytes;
    young_item items[YOUNG_BATCH_ITEMS];
} young_batch;

/* An empty batch for the current codec, to be encoded at this pace; for so many bytes of keys and
 * values, or one record, which are copied into memory of `m`. */
void young_batch_begin(young_batch *b, const mem *m, map_shared *shared, size_t most,
                       codec_pace pace);
/* Done with, its memory is given back. */
void young_batch_end(young_batch *b, map_shared *shared);

/* Which values are to be encoded: those that came to their place by a time (ticks), and of these
 * the ones that were not touched since, or all. */
typedef struct young_choice {
    uint64_t by;
    bool all;
} young_choice;

/* Puts copies of the oldest of each map in turn into a batch, until it is full or `maps` have been
 * looked at. Returns how many these were. */
uint32_t young_batch_fill(young_batch *b, map_shared *shared, young_choice which,
                          uint64_t now_ticks, uint32_t maps);

/* Encodes one item of the batch, in place. Any thread, with a workspace of its own. */
void young_batch_encode(young_batch *b, uint32_t i, codec_workspace *w);

/* Puts the result into the map that it was taken from, if its record still holds that value and the
 * codec is still the current one. If not, it is young as before, and its turn comes again. */
void map_settle(map *m, const young_batch *b, const young_item *item, uint64_t now_ticks);

/* A young record was read. */
void map_touch(map *m, const map_pos *pos);

#endif
