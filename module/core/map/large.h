/*
 * large.h: a record in an allocation of its own: one that is too large for a page, or young.
 *
 *      +---------+-----------+-----+---------------+------+
 *      | key_len | value_len | key | encoded value | hash |
 *      +---------+-----------+-----+---------------+------+
 *        4 bytes   4 bytes                           8 bytes, if the key is a long one
 *      +---------+-----------+-----+---------------+----+------------+
 *      | key_len | value_len | key | 0xff, value   |    | young_tail |
 *      +---------+-----------+-----+---------------+----+------------+
 *        the highest bit of key_len tells: young     up to a multiple of 8
 *
 * The key is stored as it is: next to such a value it costs little, and comparing needs no
 * codec. The page holds a pointer, the fingerprint and the expiry, and its codec is the value's.
 * A record moves to another page or bucket by its pointer: in no time, however large it is. So that
 * this holds for keys too, the hash of a long one is kept.
 *
 * A young record's value is not encoded yet (map_settle.h); its key is not a long one.
 */
#ifndef CKV_LARGE_H
#define CKV_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LARGE_LONG_KEY 1024 /* bytes; longer ones are long */

typedef struct large {
    uint32_t key_len : 31, young : 1;
    uint32_t value_len; /* encoded */
    uint8_t bytes[];
} large;

/* Of a young record: its place among those of its map, the oldest first, and which value it is. */
typedef struct young_tail {
    large *older, *newer;
    uint64_t number; /* no two values of a map have the same */
    uint64_t since;  /* ticks, when it came to its place */
    bool touched;    /* it was written or read since then */
    bool moved;      /* nobody has written it: it comes from a file, or out of another codec */
} young_tail;

#define LARGE_HEADER_BYTES offsetof(large, bytes)

_Static_assert(LARGE_HEADER_BYTES == 8, "the header of a large record");

static inline uint8_t *large_value(large *l) {
    return l->bytes + l->key_len;
}

/* Where the tail of a young record begins. */
static inline size_t large_tail_at(size_t key_len, size_t value_len) {
    return (LARGE_HEADER_BYTES + key_len + value_len + 7) & ~(size_t)7;
}
static inline young_tail *large_tail(large *l) {
    return (young_tail *)((uint8_t *)l + large_tail_at(l->key_len, l->value_len));
}

static inline size_t large_bytes(const large *l) {
    if (l->young) return large_tail_at(l->key_len, l->value_len) + sizeof(young_tail);
    size_t hash_bytes = l->key_len > LARGE_LONG_KEY ? sizeof(uint64_t) : 0;
    return LARGE_HEADER_BYTES + l->key_len + (size_t)l->value_len + hash_bytes;
}

/* The hash of a long key's stem, in the map that the record lies in. */
static inline uint64_t large_hash(large *l) {
    uint64_t hash;
    memcpy(&hash, large_value(l) + l->value_len, sizeof hash);
    return hash;
}
static inline void large_set_hash(large *l, uint64_t hash) {
    memcpy(large_value(l) + l->value_len, &hash, sizeof hash);
}

static inline bool large_has_key(const large *l, const void *key, size_t key_len) {
    return l->key_len == key_len && !memcmp(l->bytes, key, key_len);
}

#endif
