/* key_shapes.c: which keys may have a record, by their shapes. See key_shapes.h. */
#include "map/key_shapes.h"

#include <string.h>

#define MOST_SET  (KEY_SHAPES_BITS / 2)
#define HASH_SEED 14695981039346656037u /* FNV-1a; who makes keys collide gets look-ups */
#define HASH_BY   1099511628211u
#define SPREAD    0x9e3779b97f4a7c15u
#define MARK      256 /* no byte */

/* What a byte is. */
enum { SEPARATOR, LETTER, DIGIT };

static const uint8_t kind[256] = {
    ['0' ... '9'] = DIGIT,
    ['A' ... 'Z'] = LETTER,
    ['a' ... 'z'] = LETTER,
    [0x80 ... 0xff] = LETTER,
};

static uint64_t mix(uint64_t hash, unsigned c) {
    return (hash ^ c) * HASH_BY;
}

/* Goes over a token from `*at` on. Where there is a digit in it, it is as good as a mark, whatever
 * else it has. */
static uint64_t mix_token(uint64_t hash, const uint8_t *key, size_t len, size_t *at) {
    size_t i = *at;
    uint64_t token = hash;
    for (; i < len && kind[key[i]] == LETTER; i++) token = mix(token, key[i]);
    if (i < len && kind[key[i]] == DIGIT) {
        while (i < len && kind[key[i]] != SEPARATOR) i++;
        token = mix(hash, MARK);
    }
    *at = i;
    return token;
}

static uint32_t bit_of(const uint8_t *key, size_t len) {
    uint64_t hash = HASH_SEED;
    for (size_t i = 0; i < len;)
        hash = kind[key[i]] == SEPARATOR ? mix(hash, key[i++]) : mix_token(hash, key, len, &i);
    return (uint32_t)((hash ^ hash >> 32) * SPREAD >> 48) % KEY_SHAPES_BITS;
}

/* ---- keeping --------------------------------------------------------------------------------- */

void key_shapes_keep(key_shapes *s, bool no_records) {
    if (s->kept) return;
    s->kept = true;
    if (no_records) key_shapes_clear(s);
}

void key_shapes_stop(key_shapes *s) {
    s->kept = s->whole = false;
}

void key_shapes_clear(key_shapes *s) {
    if (!s->kept) return;
    memset(s->bits, 0, sizeof s->bits);
    s->set = 0;
    s->whole = true;
}

void key_shapes_add(key_shapes *s, const void *key, size_t len) {
    if (!s->whole) return;
    uint32_t at = bit_of(key, len);
    uint8_t bit = (uint8_t)(1u << at % 8);
    if (s->bits[at / 8] & bit) return;
    s->bits[at / 8] |= bit;
    /* Until there are no records: to go on would only cost time. */
    if (++s->set > MOST_SET) s->whole = false;
}

bool key_shapes_may_have(const key_shapes *s, const void *key, size_t len) {
    if (!s->whole) return true;
    uint32_t at = bit_of(key, len);
    return s->bits[at / 8] >> at % 8 & 1;
}

/* ---- files ----------------------------------------------------------------------------------- */

size_t key_shapes_save(const key_shapes *s, const uint8_t **bytes) {
    *bytes = s->bits;
    return s->whole ? sizeof s->bits : 0;
}

bool key_shapes_load(key_shapes *s, const uint8_t *bytes, size_t n) {
    if (n == 0) s->whole = false;
    if (n == 0 || !s->whole) return n == 0 || n == sizeof s->bits;
    if (n != sizeof s->bits) return false;
    s->set = 0;
    for (size_t i = 0; i < n; i++) {
        s->bits[i] |= bytes[i];
        s->set += (uint32_t)__builtin_popcount(s->bits[i]);
    }
    s->whole = s->set <= MOST_SET;
    return true;
}
