/*
 * codec.h: how the bytes of one key and of one value become fewer, and back.
 *
 * A codec is what one training learned: a phrase dictionary for keys, one for values and,
 * where it pays, a zstd dictionary for long values. It never changes once it is made. Pages
 * and large records name theirs by its place in a table of codecs; place 0 is the codec that
 * knows nothing and stores everything as it is.
 *
 * An encoded key or value (its length is known from outside):
 *
 *      nothing                                     the empty string
 *      [phrase codes ...]                          first byte below 0xfe, see phrase.h
 *      [0xff][the bytes as they are ...]           raw
 *      [0xfe][kind][zstd frame without magic ...]  values only; kind 0: no dictionary,
 *                                                  1: the codec's own
 *      [0xfe][2][phrase codes ...]                 values only; of the dictionary for long values
 *
 * Keys are never zstd's: equal keys must have equal encodings under one codec.
 */
#ifndef CKV_CODEC_H
#define CKV_CODEC_H

#include "base/mem.h"
#include "phrase/phrase.h"

#include <stdbool.h>
#include <stdint.h>

#define CODEC_RAW     0   /* place of the codec that knows nothing */
#define CODECS_MAX    255 /* places in a table; a page has one byte for it */
#define CODEC_NO_ROOM ((size_t)-1)

/* Values longer than this go to zstd, not to the phrase codec, and are stored as they are when
 * longer than CODEC_ZSTD_MAX: nobody is to wait for their compression. Bytes. */
#define CODEC_PHRASE_MAX (64u << 10)
#define CODEC_ZSTD_MAX   (1u << 20)

/* Short texts and long documents are mostly of different kinds: where both are stored, values of at
 * least this many bytes have a dictionary of their own. */
#define CODEC_LONG 256

typedef struct codec {
    phrase_dict *keys, *values;            /* NULL: none learned */
    phrase_dict *long_values;              /* NULL: `values` serves them all */
    const struct ZSTD_CDict_s *zstd_write; /* NULL: none learned */
    void *zstd_write_room;                 /* what it lives in */
    struct ZSTD_DDict_s *zstd_read;
    void *zstd_dict; /* the dictionary's bytes, for saving */
    size_t zstd_dict_len;
    uint32_t zstd_classes; /* bit n: worth trying on values of 2^n to 2^(n+1)-1 bytes */
    uint64_t data_bytes;   /* raw bytes that were stored when it was trained */
    int64_t made_ms;       /* when */
    size_t bytes;          /* memory that all of it takes */
} codec;

typedef struct codec_buffer {
    uint8_t *bytes;
    size_t cap;
} codec_buffer;

/* What all maps of a server share: the codecs, the room for their work, and how pages are made. Not
 * for use by two threads at a time. */
typedef struct codecs {
    const mem *mem;
    codec *place[CODECS_MAX];
    uint8_t current; /* what new records are written with */
    int zstd_level;
    bool count_uses; /* new pages have use counts, for map_evict.h */
    struct ZSTD_CCtx_s *zstd_write;
    struct ZSTD_DCtx_s *zstd_read;
    codec_buffer written, moved, decoded, frame;
    /* Of the values written lately, fading: what they came to, and what their dictionaries promised
     * when they were learned. */
    double recent_encoded, recent_expected;
    uint64_t written_bytes; /* raw, of all of them */
} codecs;

/* Memory that is not there at the start is a reason not to start: false. */
bool codecs_init(codecs *all, const mem *m, int zstd_level);
void codecs_free(codecs *all);

/* Puts a codec into a free place, which owns it then; CODECS_MAX if all are taken. */
uint32_t codecs_add(codecs *all, codec *c);
/* Frees the codec of a place that no page names any more. */
void codecs_remove(codecs *all, uint8_t place);
/* Memory of all dictionaries and their tables, bytes. */
size_t codecs_bytes(const codecs *all);

void codec_free(const mem *m, codec *c);
/* Builds what zstd needs of c->zstd_dict, and counts it in c->bytes; false: out of memory. */
bool codec_use_zstd_dict(const mem *m, codec *c, int zstd_level);
/* Frees that and the dictionary. */
void codec_forget_zstd_dict(const mem *m, codec *c);

/* Encodes a key into at most `cap` bytes. Equal keys give equal bytes. CODEC_NO_ROOM if longer. */
size_t codec_encode_key(const codecs *all, uint8_t place, const void *key, size_t n, void *dst,
                        size_t cap);
/* Decodes a key into at most `cap` bytes; CODEC_NO_ROOM if it is longer or no encoding. */
size_t codec_decode_key(const codecs *all, uint8_t place, const void *src, size_t n, void *dst,
                        size_t cap);

/* A value, encoded with the current codec. */
typedef struct codec_value {
    const uint8_t *bytes;
    size_t len, raw_len;
} codec_value;

/* Encodes a new value, at most n + 1 bytes. The bytes are the table's own, good until the next new
 * value, whatever is decoded or moved meanwhile. False: out of memory. */
bool codec_encode_new(codecs *all, const void *value, size_t n, codec_value *out);
/* The same for a value that is stored already and only changes its codec. */
bool codec_encode_moved(codecs *all, const void *value, size_t n, codec_value *out);

/* Whether an encoded value is one that any codec would have written just so: a giant, kept as it
 * is. */
bool codec_is_giant(const void *src, size_t n);

/* Gives back the room that giants took in the table's buffers. */
void codecs_trim(codecs *all);
/* Of an empty store: frees everything that has been learned and kept for work to come. */
void codecs_clear(codecs *all);

/* Decodes a value. The bytes are src's own or the table's, good until the next decoding.
 * NULL: out of memory, or no encoding. */
const uint8_t *codec_decode_value(codecs *all, uint8_t place, const void *src, size_t n,
                                  size_t *len);
/* The length of a value without decoding it, CODEC_NO_ROOM if it is no encoding. */
size_t codec_value_len(codecs *all, uint8_t place, const void *src, size_t n);

#endif
