/*
 * hot.h: long values that are decoded again and again, kept decoded beside their encoding.
 *
 *      set  | slot | slot | slot | slot |        64 bytes, chosen by the key's mark
 *              |
 *              v
 *           +-------+------+---------+---------------+-------+
 *           | codec | len  | raw_len | encoded value | value |
 *           +-------+------+---------+---------------+-------+
 *
 * What is kept is no record but a decoding. It is found by the key, and is good only for a record
 * whose encoding is byte by byte the one that it was made of, by the same codec. So it does not
 * matter what becomes of records: of one that was written over, has expired, was evicted, moved or
 * flushed, or is freed on another thread, nobody finds the decoding any more, and it goes when its
 * turn comes. To drop one takes a free() and nothing else.
 *
 * A slot without a value remembers a key that was decoded once; when it is decoded again the value
 * is kept. A hand goes round over the slots, and what was not used since it came by last goes
 * (CLOCK). There are more slots as more keys are remembered, and none without any.
 *
 * Where others have to go for a value, it is kept only as often as kept ones were read: if all
 * records are read alike, those that have room are as good as any, and to exchange them takes
 * longer than to decode. When others become hot, the hand makes room.
 *
 * Belongs to the thread that the maps belong to.
 */
#ifndef CKV_HOT_H
#define CKV_HOT_H

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Less than this is decoded in about the time that it takes to look here. Bytes, encoded. */
#define HOT_ENCODED_MIN 16

#define HOT_WAYS 4 /* slots of a set */

typedef struct hot_value {
    uint64_t codec;
    uint32_t len, raw_len;
    uint8_t bytes[];
} hot_value;

typedef struct hot_slot {
    hot_value *value; /* NULL: it is not kept */
    uint32_t mark;    /* of the key; 0: the slot is empty */
    bool used;        /* since the hand came by */
} hot_slot;

typedef struct hot_values {
    const mem *mem;
    uint64_t limit;  /* bytes that they may take; 0: none are kept */
    hot_slot *slots; /* NULL: none */
    uint32_t sets;   /* a power of two */
    uint32_t hand;
    uint32_t marked; /* slots that are not empty, */
    uint32_t count;  /* and of them, with a value */
    uint64_t bytes;  /* as allocated, slots as well */
    uint64_t read;   /* how often a value was found, since the start */
    uint32_t earned; /* by that: how many may be exchanged for others */
} hot_values;

/* An encoding, where it was found. */
typedef struct hot_key {
    uint32_t mark;  /* hot_mark() */
    uint64_t codec; /* its number: no other codec ever has it */
    const uint8_t *encoded;
    size_t len;
} hot_key;

/* Of a key whose stem has this hash. */
static inline uint32_t hot_mark(uint64_t hash, uint8_t suffix) {
    uint32_t mark = (uint32_t)(hash ^ hash >> 32) + suffix * 2654435761u;
    return mark ? mark : 1;
}

/* Asks for the cache line that a look-up will touch. */
static inline void hot_prefetch(const hot_values *h, uint32_t mark) {
    if (h->count > 0) __builtin_prefetch(h->slots + (size_t)(mark & (h->sets - 1)) * HOT_WAYS);
}

/* How many there are. */
uint32_t hot_slots(const hot_values *h);

void hot_init(hot_values *h, const mem *m);
/* Frees all there is. */
void hot_clear(hot_values *h);

/* The decoded value, good until the next call that is not this one. NULL: it is not kept. */
const uint8_t *hot_find(hot_values *h, const hot_key *key, size_t *len);

/* The record of a value is about to go: it goes as well. False: it is not kept. */
bool hot_take(hot_values *h, const hot_key *key, size_t *len);

/* A value had to be decoded. It is kept if that happens again, within `room` bytes for all of them,
 * for which others may go. */
void hot_note(hot_values *h, const hot_key *key, const uint8_t *value, size_t len, uint64_t room);

/* Lets values of so many bytes go, those first that were not used lately. Returns how many bytes
 * went: fewer, if they are far between. */
size_t hot_drop(hot_values *h, size_t bytes);
/* The same for `bytes` that have come, or are about to: so many are too much with them. Where it is
 * far more than those, as room has shrunk, most of it is left to who drops between commands. */
void hot_make_room(hot_values *h, uint64_t too_much, size_t bytes);

/* Whether there is more than the limit allows that can be dropped: the slots only where there is to
 * be nothing. */
bool hot_is_too_much(const hot_values *h);

/* The hand goes over so many slots. */
void hot_pass(hot_values *h, uint32_t slots);

/* Every invariant. */
bool hot_sane(const hot_values *h);

#endif
