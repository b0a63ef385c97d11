/*
 * uncounted.h: values that are gone and not counted out yet, over all maps. How they are counted:
 * map_uncounted.h.
 */
#ifndef CKV_UNCOUNTED_H
#define CKV_UNCOUNTED_H

#include "codec/codecs.h"

#define UNCOUNTED_AWAY  7           /* batches, at most */
#define UNCOUNTED_BYTES (16u << 10) /* of encodings in a batch; longer ones are counted at once */
#define UNCOUNTED_ITEMS 1024

struct map;

typedef struct uncounted_item {
    struct map *from;
    uint32_t at, len; /* in the batch's bytes */
    size_t raw_len;   /* CODEC_NO_ROOM: nobody can tell */
} uncounted_item;

/* Belongs to one thread at a time. */
typedef struct uncounted_batch {
    const codec *with; /* kept as long as the batch is there */
    uint8_t codec;     /* its id */
    bool counted_out;  /* the maps' thread has counted it itself; no other looks at this */
    uint32_t count, used;
    uncounted_item items[UNCOUNTED_ITEMS];
    uint8_t bytes[UNCOUNTED_BYTES];
} uncounted_batch;

typedef struct uncounted_values {
    uncounted_batch *open;                 /* NULL: none */
    bool full;                             /* it waits for being taken */
    uncounted_batch *away[UNCOUNTED_AWAY]; /* those that were */
    /* Called before a value goes, while a batch is full: takes it, to have it counted, and ends
     * those that have been. NULL: all is counted at once. */
    void (*exchange)(void);
} uncounted_values;

#endif
