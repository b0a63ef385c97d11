/*
 * codec.h: how the bytes of one key and of one value become fewer, and back.
 *
 * A codec is what one training learned: a phrase dictionary for keys, one for each kind of values
 * (kinds.h) and, where it pays, a zstd dictionary for long values. It never changes once it is
 * made, so any thread may use it, with a workspace of its own. Pages and large records name theirs
 * by its id in a table of codecs (codecs.h).
 *
 * An encoded key or value (its length is known from outside):
 *
 *      nothing                                     the empty string
 *      [kind][phrase codes ...]                    first byte below 0xfe, see phrase.h
 *      [0xff][the bytes as they are ...]           raw
 *      [0xfe][kind][zstd frame without magic ...]  values only; kind 0: no dictionary,
 *                                                  1: the codec's own
 *      [0xfe][2][phrase codes ...]                 values only; in files before format 4: of the
 *                                                  second kind, which was that of long values
 *
 * Where values are of several kinds, one is as many 1 bits as its number, and a 0; the first is
 * that of the most values. Where they are of one, as keys are, it takes no bits. Keys are never
 * zstd's: equal keys must have equal encodings under one codec.
 */
#ifndef CKV_CODEC_H
#define CKV_CODEC_H

#include "codec/kinds.h"
#include "codec/workspace.h"
#include "phrase/phrase.h"

#include <stdbool.h>
#include <stdint.h>

#define CODEC_NO_ROOM  ((size_t)-1)
#define CODEC_RAW_BYTE 0xff /* what a value begins with that is stored as it is */
#define CODEC_ESCAPES  0xfe /* from here on, what none begins with that is made of phrase codes */

/* Values longer than this are for all codecs the same: zstd without a dictionary, or as they are
 * when longer than CODEC_ZSTD_MAX, because nobody is to wait for their compression. Bytes. */
#define CODEC_PHRASE_MAX (64u << 10)
#define CODEC_ZSTD_MAX   (1u << 20)

/* Where nothing has been learned zstd finds nothing in less than this. Bytes. */
#define CODEC_ZSTD_PLAIN_MIN 512

/* Values longer than this are always encoded fast: nobody is to wait for more than a millisecond,
 * and what re-encodes them has no shorter steps. Bytes. */
#define CODEC_CHEAPEST_MAX (8u << 10)

/* Values of at least this many bytes are long ones: of them a training sees as many bytes as of
 * short ones, and before format 4 they had a dictionary of their own. */
#define CODEC_LONG 256

typedef struct codec {
    phrase_dict *keys;                     /* NULL: none learned */
    phrase_dict *values[KINDS_MAX];        /* by kind; NULL behind the last, or none learned */
    kinds_model *kinds;                    /* NULL: of one kind; of two, by length */
    uint32_t long_ratio;                   /* of long values, encoded / raw bytes, in millionths */
    const struct ZSTD_CDict_s *zstd_write; /* NULL: none learned */
    void *zstd_write_room;                 /* what it lives in */
    struct ZSTD_DDict_s *zstd_read;
    void *zstd_dict; /* the dictionary's bytes, for saving */
    size_t zstd_dict_len;
    uint32_t zstd_classes; /* bit n: worth trying on values of 2^n to 2^(n+1)-1 bytes */
    uint64_t data_bytes;   /* raw bytes that were stored when it was trained */
    int64_t made_ms;       /* when */
    size_t bytes;          /* memory that all of it takes */
    uint64_t number;       /* no other codec of a table ever has the same */
} codec;

void codec_free(const mem *m, codec *c);

/* What a codec was learned from, and when: to be said before it is used. */
static inline void codec_set_origin(codec *c, uint64_t data_bytes, int64_t made_ms) {
    c->data_bytes = data_bytes;
    c->made_ms = made_ms;
}

/* What a dictionary for zstd of so many bytes takes, with zstd's tables: before the allocator
 * rounds it up. Bytes. */
size_t codec_zstd_dict_takes(size_t dict_len, int zstd_level);
/* Builds what zstd needs of c->zstd_dict, and counts it in c->bytes; false: out of memory. */
bool codec_use_zstd_dict(const mem *m, codec *c, int zstd_level);
/* Frees that and the dictionary. */
void codec_forget_zstd_dict(const mem *m, codec *c);

/* Whether values are encoded in a way that programs cannot read that knew no copies, or none but
 * short and long values. */
bool codec_has_copies(const codec *c);
bool codec_has_kinds(const codec *c);
/* How many kinds of values there are. */
uint32_t codec_kinds(const codec *c);

/* Encodes a key into at most `cap` bytes. Equal keys give equal bytes. CODEC_NO_ROOM if longer. */
size_t codec_encode_key(const codec *c, const void *key, size_t n, void *dst, size_t cap);
/* Decodes a key into at most `cap` bytes; CODEC_NO_ROOM if it is longer or no encoding. */
size_t codec_decode_key(const codec *c, const void *src, size_t n, void *dst, size_t cap);

/* An encoded value. */
typedef struct codec_value {
    const uint8_t *bytes;
    size_t len, raw_len;
    double expected_len; /* by what the codec promised when it was learned, in the mean */
    bool young;          /* not encoded yet: the bytes are the value's own, see map_settle.h */
    bool fast;           /* encoded so, where the cheapest way might take less */
} codec_value;

/* How much time an encoding may take: little, while somebody waits for it; or several times as
 * much, so that it is the shortest. Both are decoded in the same way. */
typedef enum codec_pace { CODEC_FAST, CODEC_CHEAPEST } codec_pace;

typedef struct codec_effort {
    codec_pace pace;
    int zstd_level;
} codec_effort;

/* Encodes a value, in the way that takes least, as at most n + 1 bytes; they lie in `room`, a
 * buffer of the workspace. False: out of memory. */
bool codec_encode_value(const codec *c, codec_workspace *w, codec_buffer *room, codec_effort effort,
                        const void *value, size_t n, codec_value *out);

/* About how many bytes zstd makes of a value, by a part of it: where nobody is to wait for all. */
size_t codec_estimate_len(codec_workspace *w, const void *value, size_t n);

/* Whether an encoded value is one that any codec reads, and would have written just so: one of more
 * than CODEC_PHRASE_MAX bytes. It never has to be written anew for another codec. */
bool codec_is_common(const void *src, size_t n);

/* What the codec makes of long values of n bytes, in the mean, by what it promised when it was
 * learned. */
double codec_expected_len(const codec *c, size_t n);

/* The rest takes what a damaged page may hold: any bytes, and NULL for a codec that is not there.
 */

/* Decodes a value. The bytes are src's own or the workspace's, good until the next decoding.
 * NULL: out of memory, or no encoding. */
const uint8_t *codec_decode_value(const codec *c, codec_workspace *w, const void *src, size_t n,
                                  size_t *len);
/* The length of a value without decoding it, CODEC_NO_ROOM if it is no encoding. */
size_t codec_value_len(const codec *c, const void *src, size_t n);

#endif
