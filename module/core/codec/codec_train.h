/* codec_train.h: learning a codec from records. */
#ifndef CKV_CODEC_TRAIN_H
#define CKV_CODEC_TRAIN_H

#include "codec/codec.h"

typedef struct codec_samples {
    const phrase_sample *keys; /* stems, and whole keys of singles, as they will be encoded */
    size_t key_count;
    const phrase_sample *values;
    size_t value_count;
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
 * codec->bytes may be. zstd joins in for the sizes of values for which it beats the phrases by
 * enough. NULL: out of memory.
 */
codec *codec_train(const mem *m, const codec_samples *s, size_t max_bytes, int zstd_level);

#endif
