/* codec_train.c: learning a codec from records. See codec_train.h. */
#define ZSTD_STATIC_LINKING_ONLY
#define ZDICT_STATIC_LINKING_ONLY
#include "codec/codec_train.h"

#include <string.h>
#include <zdict.h>
#include <zstd.h>

/* Keys get at most this share of a codec's memory, 1 in n. */
#define KEYS_SHARE 4
/* Two dictionaries for values are made only where each kind has 1 in this of the bytes, and each
 * can have some room. Bytes. */
#define LONG_SHARE    16
#define LONG_ROOM_MIN (256u << 10)
/* zstd is considered for values at least this long, with a dictionary of at most this much. */
#define ZSTD_SIZE_MIN  128
#define ZSTD_DICT_MAX  (112u << 10)
#define ZSTD_TRAIN_MAX (4u << 20) /* bytes of samples it learns from */
/* Of every this many samples one is kept to compare phrases and zstd on. */
#define TRIAL_EVERY 8
#define TRIALS_MAX  2000
/* A size class is zstd's if it saves at least 1 in this of the phrases' bytes. */
#define ZSTD_GAIN 50
#define CLASSES   20

/* ---- zstd: does it pay? ---------------------------------------------------------------------- */

typedef struct trial {
    size_t phrase[CLASSES], best[CLASSES]; /* bytes by size class */
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
static bool run_trial(const mem *m, codec *c, const codec_samples *s, int level, trial *t) {
    codecs alone;
    if (!codecs_init(&alone, m, level)) return false;
    uint8_t place = (uint8_t)codecs_add(&alone, c);
    alone.current = place;
    size_t tried = 0;
    bool done = true;
    for (size_t i = 0; done && i < s->value_count && tried < TRIALS_MAX; i += TRIAL_EVERY) {
        size_t n = s->values[i].len;
        codec_value phrase, best;
        if (n < ZSTD_SIZE_MIN) continue;
        tried++;
        c->zstd_classes = 0;
        done = codec_encode_moved(&alone, s->values[i].data, n, &phrase);
        c->zstd_classes = UINT32_MAX;
        done = done && codec_encode_moved(&alone, s->values[i].data, n, &best);
        unsigned size_class = 63u - (unsigned)__builtin_clzll(n);
        if (!done || size_class >= CLASSES) continue;
        t->phrase[size_class] += phrase.len;
        t->best[size_class] += best.len;
    }
    c->zstd_classes = 0;
    alone.place[place] = NULL; /* it is the caller's */
    codecs_free(&alone);
    return done;
}

/* Whether there are values enough that are long enough for zstd. */
static bool zstd_possible(const codec_samples *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->value_count; i++) count += s->values[i].len >= ZSTD_SIZE_MIN;
    return count * 4 >= s->value_count && count >= 64;
}

/* Learns for which sizes zstd is worth its time and, with its tables, its memory; forgets about it
 * if for none. */
static bool consider_zstd(const mem *m, codec *c, const codec_samples *s, size_t max_bytes,
                          int level) {
    size_t room = max_bytes > c->bytes ? max_bytes - c->bytes : 0;
    size_t dict_max = room / 4 < ZSTD_DICT_MAX ? room / 4 : ZSTD_DICT_MAX;
    if (dict_max < 4096 || !zstd_possible(s)) return true;
    if (!train_zstd_dict(m, c, s, dict_max)) return false;
    trial t = {0};
    bool done = true;
    uint32_t classes = 0;
    if (c->zstd_dict_len > 0)
        done = codec_use_zstd_dict(m, c, level) && run_trial(m, c, s, level, &t);
    for (unsigned i = 0; i < CLASSES; i++)
        if (t.best[i] + t.phrase[i] / ZSTD_GAIN < t.phrase[i]) classes |= 1u << i;
    bool pays = classes && c->bytes <= max_bytes;
    if (!pays || !done) codec_forget_zstd_dict(m, c);
    c->zstd_classes = pays ? classes : 0;
    return done;
}

/* ---- training -------------------------------------------------------------------------------- */

/* Sorts the samples into `sorted`, short ones first, and adds up the bytes of either kind; returns
 * how many are short. */
static size_t sort_by_length(const codec_samples *s, phrase_sample *sorted, double raw[2]) {
    size_t shorts = 0, at = 0;
    for (size_t i = 0; i < s->value_count; i++) shorts += s->values[i].len < CODEC_LONG;
    size_t next[2] = {0, shorts};
    for (; at < s->value_count; at++) {
        int is_long = s->values[at].len >= CODEC_LONG;
        sorted[next[is_long]++] = s->values[at];
        raw[is_long] += s->values[at].len;
    }
    return shorts;
}

static bool train_values(const mem *m, codec *c, const codec_samples *s, size_t room) {
    double raw[2] = {0};
    phrase_sample *sorted = m->alloc((s->value_count + 1) * sizeof *sorted);
    if (!sorted) return false;
    size_t shorts = sort_by_length(s, sorted, raw), count = s->value_count;
    double least = (raw[0] + raw[1]) / LONG_SHARE;
    if (raw[0] >= least && raw[1] >= least && room >= LONG_ROOM_MIN) {
        c->long_values = phrase_train(m, sorted + shorts, count - shorts, room / 2);
        count = shorts;
    }
    bool done = count == s->value_count || c->long_values;
    if (c->long_values) {
        c->bytes += phrase_bytes(c->long_values);
        room -= phrase_bytes(c->long_values);
    }
    if (done) c->values = phrase_train(m, c->long_values ? sorted : s->values, count, room);
    m->free(sorted);
    if (!c->values) return false;
    c->bytes += phrase_bytes(c->values);
    return true;
}

codec *codec_train(const mem *m, const codec_samples *s, size_t max_bytes, int zstd_level) {
    codec *c = m->alloc(sizeof *c);
    if (!c) return NULL;
    *c = (codec){.bytes = m->usable(c)};
    c->keys = phrase_train(m, s->keys, s->key_count, max_bytes / KEYS_SHARE);
    if (!c->keys) goto failed;
    c->bytes += phrase_bytes(c->keys);
    size_t room = max_bytes > c->bytes ? max_bytes - c->bytes : 0;
    if (zstd_possible(s)) room = room / 3 * 2;
    if (!train_values(m, c, s, room) || !consider_zstd(m, c, s, max_bytes, zstd_level)) goto failed;
    return c;
failed:
    codec_free(m, c);
    return NULL;
}

/* ---- saving and loading ---------------------------------------------------------------------- */

#define TAIL_BYTES 20

static void put_u32(uint8_t *dst, uint32_t n) {
    for (int i = 0; i < 4; i++) dst[i] = (uint8_t)(n >> (8 * i));
}
static uint32_t get_u32(const uint8_t *src) {
    return (uint32_t)src[0] | (uint32_t)src[1] << 8 | (uint32_t)src[2] << 16 |
           (uint32_t)src[3] << 24;
}

size_t codec_save_size(const codec *c) {
    size_t bytes = 4 * 4 + c->zstd_dict_len + TAIL_BYTES;
    bytes += phrase_save(c->keys, NULL, 0) + phrase_save(c->values, NULL, 0);
    return bytes + (c->long_values ? phrase_save(c->long_values, NULL, 0) : 0);
}

void codec_save(const codec *c, uint8_t *dst) {
    const phrase_dict *dicts[3] = {c->keys, c->values, c->long_values};
    for (int i = 0; i < 3; i++) {
        size_t len = dicts[i] ? phrase_save(dicts[i], NULL, 0) : 0;
        put_u32(dst, (uint32_t)len);
        if (dicts[i]) phrase_save(dicts[i], dst + 4, len);
        dst += 4 + len;
    }
    put_u32(dst, (uint32_t)c->zstd_dict_len);
    if (c->zstd_dict_len) memcpy(dst + 4, c->zstd_dict, c->zstd_dict_len);
    dst += 4 + c->zstd_dict_len;
    put_u32(dst, c->zstd_classes);
    memcpy(dst + 4, &c->data_bytes, 8);
    memcpy(dst + 12, &c->made_ms, 8);
}

/* The next part of a file; its length, or -1 if it is cut short. */
static int64_t next_part(const uint8_t **src, const uint8_t *end, const uint8_t **part) {
    if (end - *src < 4) return -1;
    uint32_t len = get_u32(*src);
    *part = *src + 4;
    if ((size_t)(end - *part) < len) return -1;
    *src = *part + len;
    return len;
}

/* Reads a dictionary, or none if it may be left out. False: damaged or out of memory. */
static bool load_dict(const mem *m, const uint8_t **src, const uint8_t *end, bool optional,
                      phrase_dict **d) {
    const uint8_t *part;
    int64_t len = next_part(src, end, &part);
    if (len < 0 || (len == 0 && !optional)) return false;
    if (len > 0) *d = phrase_load(m, part, (size_t)len);
    return len == 0 || *d;
}

static bool load_zstd(const mem *m, codec *c, const uint8_t **src, const uint8_t *end, int level) {
    const uint8_t *part;
    int64_t len = next_part(src, end, &part);
    if (len <= 0) return len == 0;
    if (!(c->zstd_dict = m->alloc((size_t)len))) return false;
    memcpy(c->zstd_dict, part, (size_t)len);
    c->zstd_dict_len = (size_t)len;
    return codec_use_zstd_dict(m, c, level);
}

codec *codec_load(const mem *m, const uint8_t *src, size_t n, int zstd_level) {
    const uint8_t *end = src + n;
    codec *c = m->alloc(sizeof *c);
    if (!c) return NULL;
    *c = (codec){.bytes = m->usable(c)};
    if (!load_dict(m, &src, end, false, &c->keys) || !load_dict(m, &src, end, false, &c->values) ||
        !load_dict(m, &src, end, true, &c->long_values) ||
        !load_zstd(m, c, &src, end, zstd_level) || end - src != TAIL_BYTES) {
        codec_free(m, c);
        return NULL;
    }
    c->bytes += phrase_bytes(c->keys) + phrase_bytes(c->values);
    if (c->long_values) c->bytes += phrase_bytes(c->long_values);
    c->zstd_classes = c->zstd_dict ? get_u32(src) : 0;
    memcpy(&c->data_bytes, src + 4, 8);
    memcpy(&c->made_ms, src + 12, 8);
    return c;
}
