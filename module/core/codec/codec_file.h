/*
 * codec_file.h: a codec as bytes for a file:
 *
 *      [keys][values][long values][zstd dictionary][classes, 4 bytes][data, 8][made, 8]
 *
 * The first four come each after its length in 4 bytes; length 0: none. The classes are
 * codec->zstd_classes, data and made its origin. Long values have a dictionary in files before
 * format 4 only. From that on, of several kinds of values, the values are
 *
 *      [0xca 'k' 'd' 1][kinds, 1][long ratio, 4]
 *      KINDS_LANES times      [kind, 1]
 *      KINDS_FEATURES times   KINDS_LANES times [score, 2], see kinds.h
 *      kinds times            [length, 4][dictionary]
 *
 * and a dictionary begins with 0xc9. All numbers are little-endian.
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
