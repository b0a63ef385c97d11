/*
 * codec_file.h: a codec as bytes for a file:
 *
 *      [keys][values][long values][zstd dictionary][classes, 4 bytes][data, 8][made, 8]
 *
 * The first four come each after its length in 4 bytes; length 0: none. The classes are
 * codec->zstd_classes, data and made its origin.
 */
#ifndef CKV_CODEC_FILE_H
#define CKV_CODEC_FILE_H

#include "codec/codec.h"

size_t codec_save_size(const codec *c);
void codec_save(const codec *c, uint8_t *dst);
/* Whether the tail of a file says what the codec was learned from, and when; for a first look. */
bool codec_file_is_of(const codec *c, const uint8_t *src, size_t n);
/* Trusts nothing; NULL: no codec, or out of memory. */
codec *codec_load(const mem *m, const uint8_t *src, size_t n, int zstd_level);

#endif
