/* codec_inside.h: what the files of codec share: the first bytes of an encoding, see codec.h. */
#ifndef CKV_CODEC_INSIDE_H
#define CKV_CODEC_INSIDE_H

#include "codec/codec.h"

#include <string.h>

#define ESCAPE_RAW     CODEC_RAW_BYTE
#define ESCAPE_KIND    0xfe
#define ZSTD_PLAIN     0 /* kinds */
#define ZSTD_DICT      1
#define PHRASE_LONG    2 /* of the second kind, by length */
#define PREFIX         2 /* escape and kind, bytes */
#define ZSTD_MAGIC_LEN 4

/* Length of what a zstd frame [escape][kind][frame without magic] decodes to; CODEC_NO_ROOM: it is
 * none, or of more than CODEC_ZSTD_MAX bytes. */
size_t codec_frame_content(const uint8_t *src, size_t n);

/* Of several kinds, told apart by c->kinds: lets each encoding begin with its kind. */
void codec_use_kinds(codec *c);

/* A kind is as many 1 bits as its number, and a 0: no byte of an escape. */
static inline uint32_t codec_lead(uint8_t first) {
    return (uint32_t)__builtin_clz(~((uint32_t)first << 24));
}
_Static_assert(KINDS_MAX <= 7, "the escapes are seven 1 bits and one more");

/* Of lengths, the same up to twice as many bytes. */
static inline unsigned codec_size_class(size_t n) {
    return 63u - (unsigned)__builtin_clzll(n);
}

static inline size_t encode_raw(const void *src, size_t n, uint8_t *dst, size_t cap) {
    if (n + 1 > cap) return CODEC_NO_ROOM;
    dst[0] = ESCAPE_RAW;
    memcpy(dst + 1, src, n);
    return n + 1;
}

#endif
