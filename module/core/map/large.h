/*
 * large.h: a record that is too large for a page, in an allocation of its own.
 *
 *      +---------+-----------+-----+---------------+
 *      | key_len | value_len | key | encoded value |
 *      +---------+-----------+-----+---------------+
 *        4 bytes   4 bytes
 *
 * The key is stored as it is: next to such a value it costs little, and comparing needs no
 * codec. The page holds a pointer, the fingerprint and the expiry, and its codec is the value's.
 */
#ifndef CKV_LARGE_H
#define CKV_LARGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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
    return LARGE_HEADER_BYTES + l->key_len + (size_t)l->value_len;
}

static inline bool large_has_key(const large *l, const void *key, size_t key_len) {
    return l->key_len == key_len && !memcmp(l->bytes, key, key_len);
}

#endif
