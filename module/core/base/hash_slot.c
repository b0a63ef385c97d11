/* hash_slot.c: Redis Cluster's hash slots. See hash_slot.h. */
#include "base/hash_slot.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* CRC is linear: the remainder of a byte is the sum of its bits' remainders. */
#define BIT(i, b, r) ((i) >> (b)&1 ? (r) : 0)
#define BYTE(i)                                                                                    \
    (BIT(i, 0, 0x1021) ^ BIT(i, 1, 0x2042) ^ BIT(i, 2, 0x4084) ^ BIT(i, 3, 0x8108) ^               \
     BIT(i, 4, 0x1231) ^ BIT(i, 5, 0x2462) ^ BIT(i, 6, 0x48c4) ^ BIT(i, 7, 0x9188))
#define BYTES_4(i)  BYTE(i), BYTE((i) + 1), BYTE((i) + 2), BYTE((i) + 3)
#define BYTES_16(i) BYTES_4(i), BYTES_4((i) + 4), BYTES_4((i) + 8), BYTES_4((i) + 12)
#define BYTES_64(i) BYTES_16(i), BYTES_16((i) + 16), BYTES_16((i) + 32), BYTES_16((i) + 48)

static const uint16_t remainders[256] = {BYTES_64(0), BYTES_64(64), BYTES_64(128), BYTES_64(192)};

static uint16_t crc16(const uint8_t *bytes, size_t n) {
    uint16_t crc = 0;
    for (size_t i = 0; i < n; i++)
        crc = (uint16_t)(crc << 8) ^ remainders[(crc >> 8 ^ bytes[i]) & 0xff];
    return crc;
}

/* What is in braces; NULL: all of the key counts. */
static const uint8_t *tag_of(const uint8_t *key, size_t len, size_t *tag_len) {
    const uint8_t *open = len ? memchr(key, '{', len) : NULL;
    if (!open) return NULL;
    const uint8_t *tag = open + 1, *close = memchr(tag, '}', (size_t)(key + len - tag));
    if (!close || close == tag) return NULL;
    *tag_len = (size_t)(close - tag);
    return tag;
}

uint32_t hash_slot_of_key(const void *key, size_t len) {
    size_t tag_len;
    const uint8_t *tag = tag_of(key, len, &tag_len);
    return (tag ? crc16(tag, tag_len) : crc16(key, len)) % HASH_SLOTS;
}

size_t hash_slot_tag_end(const uint8_t *key, size_t len) {
    size_t tag_len;
    const uint8_t *tag = tag_of(key, len, &tag_len);
    return tag ? (size_t)(tag - key) + tag_len + 1 : 0;
}

void hash_slot_find_tags(uint32_t tags[HASH_SLOTS]) {
    bool found[HASH_SLOTS] = {false};
    uint32_t missing = HASH_SLOTS;
    for (uint32_t n = 0; missing > 0; n++) {
        char text[16];
        int len = snprintf(text, sizeof text, "%u", n);
        uint32_t slot = crc16((const uint8_t *)text, (size_t)len) % HASH_SLOTS;
        if (found[slot]) continue;
        found[slot] = true;
        tags[slot] = n;
        missing--;
    }
}
