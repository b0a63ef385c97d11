/* codec_train.c: learning a codec from records. See codec_train.h. */
#define ZDICT_STATIC_LINKING_ONLY
#include "codec/codec_train.h"
#include "codec/codec_inside.h"
#include "codec/codec_values.h"

#include <string.h>
#include <zdict.h>

/* Keys get at most this share of a codec's memory, 1 in n. */
#define KEYS_SHARE 4
/* zstd is considered for values at least this long, with a dictionary of at most this much. */
#define ZSTD_SIZE_MIN   128
#define ZSTD_DICT_MAX   (112u << 10)
#define ZSTD_DICT_SHARE 4          /* of the room that there is for it and its tables, 1 in n */
#define ZSTD_TRAIN_MAX  (4u << 20) /* bytes of samples it learns from */
/* Of every this many samples one is kept to compare phrases and zstd on. */
#define TRIAL_EVERY 8
#define TRIALS_MAX  2000
/* A size class is zstd's if it saves at least 1 in this of the phrases' bytes. */
#define ZSTD_GAIN 50
#define CLASSES   20

/* ---- zstd: does it pay? ---------------------------------------------------------------------- */

typedef struct trial {
    size_t raw[CLASSES], phrase[CLASSES], best[CLASSES]; /* bytes by size class */
} trial;

static bool for_trial(size_t i) {
    return i % TRIAL_EVERY == 0;
}

/* Trains a zstd dictionary of at most `max` bytes on the long values. */
static bool train_zstd_dict(const mem *m, codec *c, const codec_samples *s, size_t max) {
    size_t total = 0, count = 0;
    uint8_t *joined = m->alloc(ZSTD_TRAIN_MAX);
    size_t *sizes = m->alloc(s->value_count * sizeof *sizes);
    c->zstd_dict = m->alloc(max);
    bool done = joined && sizes && c->zstd_dict;
    for (size_t i = 0; done && i < s->value_count; i++) {
        size_t len = s->values[i].len;
        if (for_trial(i) || len < ZSTD_SIZE_MIN || total + len > ZSTD_TRAIN_MAX) continue;
        memcpy(joined + total, s->values[i].data, len);
        total += len;
        sizes[count++] = len;
    }
    if (done && count > 8) {
        ZDICT_fastCover_params_t params = {.k = 1024, .d = 8, .f = 18, .accel = 2};
        size_t len = ZDICT_trainFromBuffer_fastCover(c->zstd_dict, max, joined, sizes,
                                                     (unsigned)count, params);
        c->zstd_dict_len = ZDICT_isError(len) ? 0 : len;
    }
    if (joined) m->free(joined);
    if (sizes) m->free(sizes);
    return done;
}

/* Bytes of the held-out values by size class, as phrases, and with zstd where that is less. */
static bool run_trial(const mem *m, const codec *c, const codec_samples *s, int level, trial *t) {
    codec_workspace w;
    if (!workspace_init(&w, m)) return false;
    codec_effort effort = {CODEC_CHEAPEST, level};
    codec phrases_only = *c, both = *c;
    phrases_only.zstd_classes = 0;
    both.zstd_classes = UINT32_MAX;
    size_t tried = 0;
    bool done = true;
    for (size_t i = 0; done && i < s->value_count && tried < TRIALS_MAX; i += TRIAL_EVERY) {
        const void *value = s->values[i].data;
        size_t n = s->values[i].len;
        codec_value phrase, best;
        if (n < ZSTD_SIZE_MIN) continue;
        tried++;
        done = codec_encode_value(&phrases_only, &w, &w.moved, effort, value, n, &phrase) &&
               codec_encode_value(&both, &w, &w.moved, effort, value, n, &best);
        unsigned size_class = codec_size_class(n);
        if (!done || size_class >= CLASSES) continue;
        t->raw[size_class] += n;
        t->phrase[size_class] += phrase.len;
        t->best[size_class] += best.len;
    }
    workspace_free(&w);
    return done;
}

/* Whether there are values enough that are long enough for zstd. */
static bool zstd_possible(const codec_samples *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->value_count; i++) count += s->values[i].len >= ZSTD_SIZE_MIN;
    return count * 4 >= s->value_count && count >= 64;
}

/* Bytes that zstd saves of `stored` bytes of records in some size classes, by the samples. */
static double saved(const codec_samples *s, const trial *t, uint32_t classes, double stored) {
    double raw[CLASSES] = {0}, all = 0, bytes = 0;
    for (size_t i = 0; i < s->value_count; i++) {
        unsigned size_class = codec_size_class(s->values[i].len);
        all += s->values[i].len;
        if (size_class < CLASSES) raw[size_class] += s->values[i].len;
    }
    for (unsigned i = 0; i < CLASSES; i++)
        if (classes >> i & 1)
            bytes += raw[i] * (double)(t->phrase[i] - t->best[i]) / (double)t->raw[i];
    return all > 0 ? bytes / all * stored : 0;
}

/* Learns for which sizes zstd is worth its time and, with its tables, its memory; forgets about it
 * if for none. */
static bool consider_zstd(const mem *m, codec *c, const codec_samples *s, size_t max_bytes,
                          uint64_t stored, int level) {
    size_t phrases = c->bytes, room = max_bytes > phrases ? max_bytes - phrases : 0;
    size_t share = room / ZSTD_DICT_SHARE, dict_max = share < ZSTD_DICT_MAX ? share : ZSTD_DICT_MAX;
    if (dict_max < 4096 || !zstd_possible(s)) return true;
    if (!train_zstd_dict(m, c, s, dict_max)) return false;
    trial t = {0};
    bool done = true;
    uint32_t classes = 0;
    if (c->zstd_dict_len > 0)
        done = codec_use_zstd_dict(m, c, level) && run_trial(m, c, s, level, &t);
    for (unsigned i = 0; i < CLASSES; i++)
        if (t.best[i] + t.phrase[i] / ZSTD_GAIN < t.phrase[i]) classes |= 1u << i;
    bool pays = classes && c->bytes <= max_bytes &&
                saved(s, &t, classes, (double)stored) > (double)(c->bytes - phrases);
    if (!pays || !done) codec_forget_zstd_dict(m, c);
    c->zstd_classes = pays ? classes : 0;
    return done;
}

/* What is left of some room for phrases, which may take a 16th more (phrase_train), if zstd's
 * tables are to fit beside them, in blocks of the allocator; two thirds of it, if they take more
 * than the rest. zstd's dictionary has a part of what is left. */
static size_t beside_zstd(size_t room, int level) {
    size_t takes = codec_zstd_dict_takes(ZSTD_DICT_MAX, level) / 4 * 5;
    if (takes < ZSTD_DICT_MAX * ZSTD_DICT_SHARE) takes = ZSTD_DICT_MAX * ZSTD_DICT_SHARE;
    size_t left = room > takes ? (room - takes) / 17 * 16 : 0, share = room / 3 * 2;
    return left > share ? left : share;
}

/* ---- training -------------------------------------------------------------------------------- */

codec *codec_train(const mem *m, const codec_samples *s, size_t max_bytes, int zstd_level) {
    codec *c = m->alloc(sizeof *c);
    if (!c) return NULL;
    *c = (codec){.bytes = m->usable(c)};
    /* Little that is stored will grow before there is another codec. */
    uint64_t stored = (uint64_t)max_bytes * PHRASE_RECORDS;
    if (stored < s->stored) stored = s->stored;
    c->keys = phrase_train(m, s->keys, s->key_count, max_bytes / KEYS_SHARE, stored, false);
    if (!c->keys) goto failed;
    c->bytes += phrase_bytes(c->keys);
    size_t room = max_bytes > c->bytes ? max_bytes - c->bytes : 0;
    if (zstd_possible(s)) room = beside_zstd(room, zstd_level);
    bool done = codec_train_values(m, c, s->values, s->value_count, room, stored);
    if (!done || !consider_zstd(m, c, s, max_bytes, stored, zstd_level)) goto failed;
    return c;
failed:
    codec_free(m, c);
    return NULL;
}
