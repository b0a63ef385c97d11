/*
 * large.h: a record that is too large for a page, in an allocation of its own.
 *
 *      +---------+-----------+-----+---------------+------+
 *      | key_len | value_len | key | encoded value | hash |
 *      +---------+-----------+-----+---------------+------+
 *        4 bytes   4 bytes                           8 bytes, if the key is a long one
 *
 * The key is stored as it is: next to such a value it costs little, and comparing needs no
 * codec. The page holds a pointer, the fingerprint and the expiry, and its codec is the value's.
 * A record moves to another page or bucket by its pointer: in no time, however large it is. So that
 * this holds for keys too, the hash of a long one is kept.
 */
#ifndef CKV_LARGE_H
#define CKV_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LARGE_LONG_KEY 1024 /* bytes; longer ones are long */

typedef struct large {
    uint32_t key_len;
    uint32_t value_len; /* encoded */
    uint8_t bytes[];
} large;

#define LARGE_HEADER_BYTES offsetof(large, bytes)

_Static_assert(LARGE_HEADER_BYTES == 8, "the header of a large record");

static inline uint8_t *large_value(large *l) {
    return l->bytes + l->key_len;
}

static inline size_t large_bytes(const large *l) {
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
