/* learn.c: see learn.h. */
#include "learn.h"

#include "base/stem.h"
#include "codec/codec_file.h"
#include "codec/codec_train.h"
#include "common/common.h"
#include "counted.h"
#include "map/defaults.h"
#include "map/map.h"
#include "progress.h"
#include "stems.h"

#include <stdlib.h>

/* Raw bytes of all strings of the server that ckv would store. */
static double raw_bytes(const sample *s) {
    double bytes = 0;
    for (size_t i = 0; i < s->count; i++) {
        const sampled *k = &s->all[i];
        if (k->value) bytes += k->weight * (double)(k->key_len + k->value_len);
    }
    return bytes;
}

/* Short ones first, as the server has them: what is tried on some of them is tried on the first. */
static size_t gather_values(const sample *s, const selection *chosen, phrase_sample *values) {
    size_t count = 0;
    for (int kind = 0; kind < KINDS_OF_VALUES; kind++) {
        const kind_of_values *of = &chosen->kinds[kind];
        for (size_t i = 0; i < of->learned; i++) {
            const sampled *k = &s->all[of->all[i]];
            if (k->value_len == 0) continue;
            size_t len = k->value_len < CODEC_SAMPLE_VALUE ? k->value_len : CODEC_SAMPLE_VALUE;
            values[count++] = (phrase_sample){k->value, (uint32_t)len};
        }
    }
    return count;
}

/* Stems, each once. */
static size_t gather_keys(const entries *stored, phrase_sample *keys) {
    size_t count = 0, bytes = 0;
    stems *seen = stems_new(stored->count);
    for (size_t i = 0; i < stored->count && bytes < CODEC_SAMPLE_KEYS; i++) {
        const entry *e = &stored->all[i];
        uint8_t suffix;
        size_t len = stem_split((const uint8_t *)e->key, e->len, &suffix);
        if (len > MAP_KEY_MAX || !stems_add(seen, e->key, len)) continue;
        keys[count++] = (phrase_sample){e->key, (uint32_t)len};
        bytes += len;
    }
    stems_free(seen);
    return count;
}

/* In the server's memory, as it would be there. */
static codec *copy(const uint8_t *file, size_t len) {
    codec *c = codec_load(&mem_counted, file, len, DEFAULT_COMPRESSION_LEVEL);
    if (!c) fail(1, "out of memory");
    return c;
}

void learn(const sample *s, const selection *chosen, const entries *stored, codec **first,
           codec **second) {
    double raw = raw_bytes(s);
    *first = *second = NULL;
    if (raw < DEFAULT_TRAIN_AFTER) return;
    progress_show("learning from it", 0);
    phrase_sample *values = allocate((s->count + 1) * sizeof *values);
    phrase_sample *keys = allocate((stored->count + 1) * sizeof *keys);
    codec_samples samples = {.values = values, .keys = keys, .stored = (uint64_t)raw};
    samples.value_count = gather_values(s, chosen, values);
    samples.key_count = gather_keys(stored, keys);
    size_t max_bytes = codec_allowance((uint64_t)raw, DEFAULT_DICTIONARY_SIZE);
    codec *c = codec_train(&mem_libc, &samples, max_bytes, DEFAULT_COMPRESSION_LEVEL);
    if (!c) fail(1, "out of memory");
    size_t len = codec_save_size(c);
    uint8_t *file = allocate(len);
    codec_save(c, file);
    codec_free(&mem_libc, c);
    *first = copy(file, len);
    *second = copy(file, len);
    free(file);
    free(values);
    free(keys);
}
