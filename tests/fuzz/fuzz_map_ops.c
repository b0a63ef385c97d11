/*
 * fuzz_map_ops.c: any bytes as a stream of operations on a map, which must agree with a plain table
 * and be sane after each.
 *
 *      [operation, 1 byte][key, 1 byte][argument, 2 bytes] ...
 */
#include "core/codec/codec_train.h"
#include "core/map/map_copy.h"
#include "core/map/map_expire.h"
#include "core/map/map_reencode.h"
#include "core/map/map_save.h"
#include "core/map/map_settle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS      256
#define VALUE_MAX 5000
#define STEP      4
#define STEPS_MAX 400

static const uint64_t secret[2] = {1, 2};

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

typedef struct expected {
    bool there;
    uint16_t seed; /* of the value */
    int64_t at_ms; /* EXPIRY_NEVER, or the time that was asked for */
    int64_t ttl_ms;
} expected;

static map_shared all;
static map_group group;
static young_batch batch;
static enum { NO_BATCH, TAKEN, ENCODED } state;
static codec_workspace work; /* as an encoder's */
static expected model[KEYS];
static int64_t now_ms;

/* Neighbours that share a stem, short and binary keys, and keys too long for a page. */
static size_t make_key(char *key, unsigned i) {
    if (i % 8 == 0) return (size_t)sprintf(key, "user:%u:profile", i);
    if (i % 16 == 1) {
        memset(key, 'x', 1100);
        return 1100 + (size_t)sprintf(key + 1100, "%u", i);
    }
    if (i % 16 == 3) {
        key[0] = 0;
        key[1] = (char)i;
        return i == 3 ? 0 : 2;
    }
    return (size_t)sprintf(key, "KEY:%u", 1000 + i);
}

/* Some compress, some don't, some are too long for a page. */
static size_t make_value(char *value, uint16_t seed) {
    size_t len = seed % 64 == 63 ? seed % VALUE_MAX : seed % 16 == 15 ? seed % 700 : seed % 90;
    uint32_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < len; i++) {
        state = state * 1664525u + 1013904223u;
        value[i] = seed % 3 ? "the quick brown fox "[(i + seed) % 20] : (char)(state >> 24);
    }
    return len;
}

static codec *train(void) {
    static char texts[500][VALUE_MAX], names[500][1200];
    static phrase_sample keys[500], values[500];
    for (unsigned i = 0; i < 500; i++) {
        keys[i] = (phrase_sample){names[i], (uint32_t)make_key(names[i], i % KEYS)};
        values[i] =
            (phrase_sample){texts[i], (uint32_t)make_value(texts[i], (uint16_t)(i * 3 + 1))};
    }
    codec_samples s = {keys, 500, values, 500, 0};
    return codec_train(&mem_libc, &s, 64 << 10, 3);
}

static void start(void) {
    MUST(workspace_init(&work, &mem_libc));
    MUST(map_shared_init(&all, &mem_libc, 3));
    MUST(codecs_add(&all.codecs, train()) == 1 && codecs_add(&all.codecs, train()) == 2);
}

/* ---- checking -------------------------------------------------------------------------------- */

static void check(map *m, unsigned i) {
    char key[1200], value[VALUE_MAX];
    map_key k;
    map_pos pos;
    const expected *e = &model[i];
    map_key_init(m, &k, key, make_key(key, i));
    MUST(map_find(m, &k, &pos) == e->there);
    if (!e->there) return;
    size_t len, wanted = make_value(value, e->seed);
    const uint8_t *got = map_value(m, &pos, &len);
    MUST(got && len == wanted && !memcmp(got, value, len));
    got = map_read(m, &k, &pos, &len);
    MUST(got && len == wanted && !memcmp(got, value, len));
    int64_t at_ms = map_expiry_ms(&pos);
    if (e->at_ms == EXPIRY_NEVER)
        MUST(at_ms == EXPIRY_NEVER);
    else if (e->at_ms > now_ms)
        MUST(at_ms >= e->at_ms && at_ms <= e->at_ms + 2 + e->ttl_ms / 1000);
}

static void check_all(map *m) {
    uint64_t there = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        check(m, i);
        there += model[i].there;
    }
    MUST(there == m->totals.records);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void put(map *m, unsigned i, uint16_t argument) {
    char key[1200], value[VALUE_MAX];
    map_key k;
    map_pos pos;
    codec_value encoded;
    int64_t ttl_ms = argument % 2 ? 1 + (int64_t)argument * argument : 0;
    model[i] = (expected){true, argument, ttl_ms ? now_ms + ttl_ms : EXPIRY_NEVER, ttl_ms};
    map_key_init(m, &k, key, make_key(key, i));
    bool found = map_find(m, &k, &pos);
    MUST(map_encode(&all, value, make_value(value, argument), &encoded));
    MUST(map_put(m, &k, found ? &pos : NULL, &encoded, expiry_code(model[i].at_ms, now_ms),
                 expiry_ticks(now_ms)));
}

static void delete_or_expire(map *m, unsigned i, uint16_t argument) {
    char key[1200];
    map_key k;
    map_pos pos;
    map_key_init(m, &k, key, make_key(key, i));
    if (!map_find(m, &k, &pos)) return;
    if (argument % 2) {
        map_delete(m, &k, &pos, expiry_ticks(now_ms));
        model[i].there = false;
        return;
    }
    model[i].ttl_ms = argument % 4 ? 1 + (int64_t)argument * 1000 : 0;
    model[i].at_ms = model[i].ttl_ms ? now_ms + model[i].ttl_ms : EXPIRY_NEVER;
    MUST(map_set_expiry(m, &k, &pos, expiry_code(model[i].at_ms, now_ms), expiry_ticks(now_ms)));
}

static void told(void *context, const uint8_t *key, size_t len) {
    char name[1200];
    (void)context;
    for (unsigned i = 0; i < KEYS; i++) {
        if (make_key(name, i) != len || memcmp(name, key, len)) continue;
        MUST(model[i].there && model[i].at_ms <= now_ms);
        model[i].there = false;
        return;
    }
    MUST(!"an expired record that was never stored");
}

static bool save_large(void *context, large **l) {
    large **next = context;
    while (*next) next++;
    *next = *l;
    return true;
}

static bool load_large(void *context, large **at) {
    map *m = ((void **)context)[0];
    large ***next = (large ***)context + 1;
    const large *l = *(*next)++;
    uint8_t bytes[1300 + VALUE_MAX];
    map_large_save(l, bytes);
    *at = map_large_load(m, bytes, map_large_size(l));
    return *at != NULL;
}

static map *replace(map *m, map *by) {
    map_leave(m);
    map_free(m);
    map_join(by, &group);
    return by;
}

/* The map from its own saved bytes. */
static map *save_and_load(map *m) {
    static uint8_t codec_ids[256] = {0, 1, 2};
    uint64_t head[MAP_HEAD];
    map_save_head(m, head);
    map *loaded = map_load_head(&all, head);
    for (uint32_t i = 0; i < m->buckets; i++) {
        large *larges[KEYS + 1] = {NULL};
        size_t n = map_bucket_size(m, i);
        uint8_t *bytes = malloc(n);
        MUST(map_bucket_save(m, i, bytes) == n);
        map_each_large(m, i, save_large, larges);
        MUST(map_bucket_load(loaded, i, bytes, n, codec_ids) == n);
        free(bytes);
        void *context[2] = {loaded, larges};
        MUST(map_each_large(loaded, i, load_large, context));
    }
    map_load_end(loaded, head);
    return replace(m, loaded);
}

/* A batch of young values goes on its way; the map is another one now, or has changed. */
static void encode(map *m, uint16_t argument) {
    switch (state) {
    case NO_BATCH:
        young_batch_begin(&batch, all.mem, &all, argument,
                          argument % 2 ? CODEC_CHEAPEST : CODEC_FAST);
        young_batch_fill(&batch, &all, (young_choice){UINT64_MAX, argument % 2},
                         expiry_ticks(now_ms), 1);
        state = TAKEN;
        break;
    case TAKEN:
        for (uint32_t i = 0; i < batch.count; i++) young_batch_encode(&batch, i, &work);
        state = ENCODED;
        break;
    case ENCODED:
        for (uint32_t i = 0; i < batch.count; i++)
            map_settle(m, &batch, &batch.items[i], expiry_ticks(now_ms));
        young_batch_end(&batch, &all);
        state = NO_BATCH;
    }
}

static map *copy(map *m) {
    map *second = map_copy(m);
    MUST(second != NULL);
    return replace(m, second);
}

static map *step(map *m, const uint8_t *bytes) {
    unsigned i = bytes[1];
    uint16_t argument = (uint16_t)(bytes[2] | bytes[3] << 8);
    switch (bytes[0] % 16) {
    case 0:
        codecs_use(&all.codecs, (uint8_t)(argument % 3));
        break;
    case 1:
        MUST(map_reencode(m, argument % m->buckets, expiry_ticks(now_ms), 40u * i, NULL) !=
             MAP_FAILED);
        break;
    case 2:
        now_ms += argument;
        hot_pass(&all.hot, i);
        break;
    case 3:
        map_expire(m, argument % m->buckets, now_ms, 1 + i, told, NULL);
        break;
    case 4:
        m = save_and_load(m);
        break;
    case 5:
        m = copy(m);
        break;
    case 6:
        map_leave(m);
        map_join(m, &group);
        all.young.limit = argument % 2 ? 1 << 20 : argument;
        map_shared_keep_hot(&all, argument % 4);
        break;
    case 7:
    case 8:
    case 9:
        encode(m, argument);
        break;
    case 10:
    case 11:
        delete_or_expire(m, i, argument);
        break;
    default:
        put(m, i, argument);
    }
    check(m, i);
    return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    if (!all.mem) start();
    memset(model, 0, sizeof model);
    now_ms = 1700000000000;
    codecs_use(&all.codecs, CODEC_RAW);
    all.young.limit = 1 << 20;
    map_shared_keep_hot(&all, UINT64_MAX);
    map *m = map_new(&all, secret);
    map_join(m, &group);
    for (size_t at = 0; at + STEP <= n && at < STEPS_MAX * STEP; at += STEP) {
        m = step(m, bytes + at);
        MUST(map_sane(m) && hot_sane(&all.hot));
    }
    check_all(m);
    while (state != NO_BATCH) encode(m, 0);
    check_all(m);
    map_leave(m);
    map_free(m);
    MUST(all.young.bytes == 0);
    hot_clear(&all.hot);
    return 0;
}
