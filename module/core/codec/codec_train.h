/* codec_train.h: learning a codec from records. */
#ifndef CKV_CODEC_TRAIN_H
#define CKV_CODEC_TRAIN_H

#include "codec/codec.h"

/* What a training looks at. Bytes: of short values, and as many of long ones (CODEC_LONG); of keys;
 * of one value, as the rest of a long one teaches little more. */
#define CODEC_SAMPLE_VALUES (16u << 20)
#define CODEC_SAMPLE_KEYS   (4u << 20)
#define CODEC_SAMPLE_VALUE  (16u << 10)

/* What a codec may take that learns from little. Bytes. */
#define CODEC_BYTES_MIN (64u << 10)
/* What one may take for `raw` bytes of keys and values: 3% of them, or that; never above `most`. */
static inline uint64_t codec_allowance(uint64_t raw, uint64_t most) {
    uint64_t bytes = raw / PHRASE_RECORDS;
    if (bytes < CODEC_BYTES_MIN) bytes = CODEC_BYTES_MIN;
    return bytes < most ? bytes : most;
}

typedef struct codec_samples {
    const phrase_sample *keys; /* stems, and whole keys of singles, as they will be encoded */
    size_t key_count;
    const phrase_sample *values;
    size_t value_count;
    uint64_t stored; /* bytes of keys and values that they were taken from; 0: not known */
} codec_samples;

/* How likely each part of `bytes` bytes of data is to be looked at, so that a sample of about
 * `wanted` bytes comes of it: as a share of CODEC_SAMPLE_ALL. */
#define CODEC_SAMPLE_ALL (1ULL << 32)
static inline uint64_t codec_sample_chance(uint64_t bytes, uint64_t wanted) {
    if (bytes <= wanted) return CODEC_SAMPLE_ALL;
    return (uint64_t)((double)CODEC_SAMPLE_ALL * (double)wanted / (double)bytes);
}

/*
 * Learns from samples, which are only read; takes seconds, runs on any thread. `max_bytes` is what
 * codec->bytes may be, or a 16th more (phrase_train). zstd joins in for the sizes of values for
 * which it beats the phrases by enough, if that saves more of so much data than its dictionary
 * takes. NULL: out of memory.
 */
codec *codec_train(const mem *m, const codec_samples *s, size_t max_bytes, int zstd_level);

#endif
