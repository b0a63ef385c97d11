/* siphash.c: SipHash-1-3. */
#include "base/siphash.h"

#include <string.h>

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static inline void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

uint64_t siphash13(const void *bytes, size_t n, const uint64_t secret[2]) {
    const uint8_t *p = bytes, *end = p + (n & ~(size_t)7);
    uint64_t v[4] = {secret[0] ^ 0x736f6d6570736575ULL, secret[1] ^ 0x646f72616e646f6dULL,
                     secret[0] ^ 0x6c7967656e657261ULL, secret[1] ^ 0x7465646279746573ULL};
    uint64_t word;
    for (; p < end; p += 8) {
        memcpy(&word, p, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    for (size_t i = 0; i < (n & 7); i++) word |= (uint64_t)p[i] << (8 * i);
    word |= (uint64_t)n << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
