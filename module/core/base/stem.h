/*
 * stem.h: what of a key says where its record lies (Instagram's trick).
 *
 *      media:1155315  ->  stem "media:11553", suffix 15
 *      user:7         ->  stem "user:7", no suffix
 *
 * A key that ends in three or more decimal digits is placed by what is left when its
 * last two digits are dropped, so that a hundred neighbours share one copy of the stem
 * and each needs a byte to say which one it is. Any other key is its own stem. A stem
 * with a suffix ends in a digit, so "abc12" (two digits: no suffix) and the group of
 * "abc12xx" share stem bytes but never mean the same key: the suffix tells them apart.
 */
#ifndef CKV_STEM_H
#define CKV_STEM_H

#include <stddef.h>
#include <stdint.h>

#define STEM_NO_SUFFIX 0xff
#define STEM_DIGITS    2

static inline int stem_is_digit(uint8_t c) {
    return (uint8_t)(c - '0') < 10;
}

/* Length of the stem of `key`; *suffix becomes 0..99 or STEM_NO_SUFFIX. */
static inline size_t stem_split(const uint8_t *key, size_t n, uint8_t *suffix) {
    *suffix = STEM_NO_SUFFIX;
    if (n < 3 || !stem_is_digit(key[n - 1]) || !stem_is_digit(key[n - 2]) ||
        !stem_is_digit(key[n - 3]))
        return n;
    *suffix = (uint8_t)((key[n - 2] - '0') * 10 + (key[n - 1] - '0'));
    return n - STEM_DIGITS;
}

/* Writes the digits of a suffix behind its stem; returns the length of the whole key. */
static inline size_t stem_join(uint8_t *key, size_t stem_len, uint8_t suffix) {
    if (suffix == STEM_NO_SUFFIX) return stem_len;
    key[stem_len] = (uint8_t)('0' + suffix / 10);
    key[stem_len + 1] = (uint8_t)('0' + suffix % 10);
    return stem_len + STEM_DIGITS;
}

#endif
