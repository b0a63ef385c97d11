/* A saved map with flipped bits: it is refused, or loads and survives traffic and a new codec. */
#include "../test.h"
#include "codec/codec_train.h"
#include "map/map_reencode.h"
#include "map/map_save.h"

#include <string.h>

#define RECORDS  1500
#define VARIANTS 1000

static const uint64_t secret[2] = {1, 2};
static const int64_t now_ms = 1700000000000;

static size_t make_key(char *key, int i) {
    return (size_t)sprintf(key, i % 4 == 0 ? "user:%d:profile" : i % 4 == 1 ? "%d" : "KEY:%d", i);
}

static size_t make_value(char *value, int i) {
    size_t len =
        (size_t)sprintf(value, "{\"id\":%d,\"name\":\"somebody %d\",\"seen\":%d}", i, i % 7, i);
    size_t copies = i % 50 == 0 ? 40 : i % 11 == 0 ? 8 : 1;
    for (size_t c = 1; c < copies; c++) memcpy(value + c * len, value, len);
    if (i % 50 == 0)
        for (size_t j = 0; j < copies * len; j++) value[j] = (char)test_random();
    return copies * len;
}

static void put(map *m, int i) {
    char key[64], value[4000];
    map_key k;
    map_pos pos;
    codec_value encoded;
    map_key_init(m, &k, key, make_key(key, i));
    bool found = map_find(m, &k, &pos);
    CHECK(map_encode(m->shared, value, make_value(value, i), &encoded));
    CHECK(map_put(m, &k, found ? &pos : NULL, &encoded,
                  i % 2 ? EXPIRY_NONE : expiry_code(now_ms + 100000, now_ms),
                  expiry_ticks(now_ms)));
}

static codec *train(void) {
    static char keys[RECORDS][64], values[RECORDS][4000];
    static phrase_sample key_samples[RECORDS], value_samples[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        key_samples[i] = (phrase_sample){keys[i], (uint32_t)make_key(keys[i], i)};
        value_samples[i] = (phrase_sample){values[i], (uint32_t)make_value(values[i], i)};
    }
    codec_samples s = {key_samples, RECORDS, value_samples, RECORDS, 0};
    return codec_train(&mem_libc, &s, 64 << 10, 3);
}

static bool load_large(void *context, large **l) {
    static const uint8_t bytes[] = {4, 0, 0, 0, '1', '2', '3', '5', 0xff, 'x', 'y'};
    return (*l = map_large_load(context, bytes, sizeof bytes)) != NULL;
}

static map *load(map_shared *all, const uint8_t *bytes, size_t n) {
    uint8_t codec_ids[256];
    memset(codec_ids, MAP_SAVE_NO_CODEC, sizeof codec_ids);
    codec_ids[0] = 0;
    codec_ids[1] = 1;
    map *m = map_new(all, secret);
    size_t at = 0;
    for (uint32_t i = 0; at < n; i++) {
        size_t read = map_bucket_load(m, i, bytes + at, n - at, codec_ids);
        at += read;
        if (read && map_each_large(m, i, load_large, m)) continue;
        map_free(m);
        return NULL;
    }
    return m;
}

static bool visit(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    size_t len;
    (void)key, (void)key_len;
    map_value(context, pos, &len);
    map_expiry_ms(pos);
    return true;
}

static void traffic(map *m, int salt) {
    map_each_record(m, visit, m);
    for (int i = salt % 7; i < RECORDS; i += 7) {
        char key[64];
        map_key k;
        map_pos pos;
        map_key_init(m, &k, key, make_key(key, i));
        bool found = map_find(m, &k, &pos);
        if (i % 3 == 0 && found)
            map_delete(m, &k, &pos, expiry_ticks(now_ms));
        else
            put(m, i);
    }
    codecs_use(&m->shared->codecs, 2);
    mem_retired old = {0};
    for (uint32_t i = 0; i < m->buckets; i++)
        map_reencode(m, i, expiry_ticks(now_ms + 500), SIZE_MAX, &old);
    mem_free_retired(m->shared->mem, &old);
    for (int i = 0; i < RECORDS; i += 50) put(m, i);
    codecs_use(&m->shared->codecs, 1);
}

/* A file's word on how long its records are decides when to train: whatever it says, the sums stay
 * what records may have. */
static void wrong_sums(map_shared *all, const uint8_t *saved, size_t n) {
    const uint64_t words[] = {0, 1000, UINT64_MAX / 4, UINT64_MAX};
    for (int i = 0; i < 4; i++) {
        const uint64_t head[MAP_HEAD] = {1, 2, 1, words[i], words[i]};
        map *m = load(all, saved, n);
        map_load_end(m, head);
        for (int salt = 0; salt < 7; salt++) {
            CHECK(m->totals.key_bytes < 1ULL << 40 && m->totals.value_bytes < 1ULL << 40);
            traffic(m, salt);
        }
        map_free(m);
    }
}

int main(void) {
    map_shared all;
    static uint8_t saved[4 << 20], damaged[4 << 20];
    CHECK(map_shared_init(&all, &mem_libc, 3));
    CHECK(codecs_add(&all.codecs, train()) == 1 && codecs_add(&all.codecs, train()) == 2);
    map *m = map_new(&all, secret);
    codecs_use(&all.codecs, 1);
    for (int i = 0; i < RECORDS; i++) put(m, i);
    CHECK(map_sane(m));
    size_t n = 0;
    for (uint32_t i = 0; i < m->buckets; i++) n += map_bucket_save(m, i, saved + n);
    map_free(m);
    CHECK((m = load(&all, saved, n)) != NULL);
    map_free(m);
    wrong_sums(&all, saved, n);
    int loaded = 0;
    for (int v = 0; v < VARIANTS; v++) {
        memcpy(damaged, saved, n);
        for (uint64_t f = 1 + test_random() % 3; f > 0; f--)
            damaged[test_random() % n] ^= (uint8_t)(1 << test_random() % 8);
        if (!(m = load(&all, damaged, n))) continue;
        loaded++;
        traffic(m, v);
        map_free(m);
    }
    CHECK(loaded > 0 && loaded < VARIANTS);
    map_shared_free(&all);
    return test_report("map damage");
}
