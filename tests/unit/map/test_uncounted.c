/* Values that are gone are counted out of the sums of their maps by whoever counts them, once, and
 * before anybody needs the sums. */
#include "../test.h"
#include "codec/codec_train.h"
#include "group.h"
#include "map/map.h"
#include "map/map_evict.h"
#include "map/map_save.h"
#include "map/map_uncounted.h"

#define KEYS    2000
#define LEN     700
#define TRAINED 200
#define APART   100 /* where values begin in the text */

static const uint64_t secret[2] = {1, 2};
static const int64_t now_ms = 1700000000000;
static char text[(KEYS + 10) * APART];

static map_shared all;
static map_group group;
static uncounted_batch *away[UNCOUNTED_AWAY];
static int count;

static void keep(void) {
    if (count < UNCOUNTED_AWAY && (away[count] = uncounted_take(&all)) != NULL) count++;
}

/* All, and what waits for room among them. */
static void bring_back(void) {
    for (keep(); count > 0; keep()) {
        uncounted_batch *b = away[--count];
        uncounted_count(b);
        uncounted_end(&all, b);
    }
}

static void train(void) {
    static phrase_sample values[TRAINED], key = {"doc:1000", 8};
    for (size_t i = 0; i < sizeof text; i++) text[i] = "abcdefgh "[test_random() % 9];
    for (int i = 0; i < TRAINED; i++) values[i] = (phrase_sample){text + i * APART, LEN};
    codec_samples s = {&key, 1, values, TRAINED, 0};
    codecs_use(&all.codecs,
               (uint8_t)codecs_add(&all.codecs, codec_train(&mem_libc, &s, 64 << 10, 3)));
}

static void write_all(map *m, size_t len) {
    char key[20];
    for (int i = 0; i < KEYS; i++)
        CHECK(map_store(m, key, (size_t)sprintf(key, "doc:%d", 100000 + i), text + i * APART, len,
                        EXPIRY_NEVER, now_ms));
}

static void delete_half(map *m) {
    char key[20];
    map_key k;
    map_pos pos;
    for (int i = 0; i < KEYS; i += 2) {
        map_key_init(m, &k, key, (size_t)sprintf(key, "doc:%d", 100000 + i));
        CHECK(map_find(m, &k, &pos));
        map_delete(m, &k, &pos, expiry_ticks(now_ms));
    }
}

static map *new_map(void) {
    map *m = map_new(&all, secret);
    map_join(m, &group);
    write_all(m, LEN);
    return m;
}

static void free_map(map *m) {
    map_leave(m);
    map_free(m);
    CHECK(group.totals.value_bytes == 0 && group.totals.records == 0);
}

static void told(void *unused, const uint8_t *key, size_t len) {
    (void)unused, (void)key, (void)len;
}

/* However it goes, a value stays in the sums until its batch is back; and not longer. */
static void test_counted_by_another(void) {
    map *m = new_map();
    map_eviction how = {.order = MAP_EVICT_RANDOM, .now_ms = now_ms};
    write_all(m, LEN + 1);
    CHECK(count > 0 && m->totals.value_bytes > KEYS * (LEN + 1));
    bring_back();
    delete_half(m);
    for (uint32_t i = 0; i < m->buckets; i++) map_evict(m, i, &how, told, NULL);
    CHECK(count > 0 && m->totals.value_bytes > m->totals.records * (LEN + 1));
    bring_back();
    CHECK(!uncounted_any(&all) && group_follows(m));
    CHECK(m->totals.value_bytes == m->totals.records * (LEN + 1));
    CHECK(map_sane(m));
    free_map(m);
}

/* Of what many batches hold that nobody brings back no more is put aside: the rest is counted at
 * once. */
static void test_nobody_counts(void) {
    map *m = new_map();
    for (int i = 0; i < 20; i++) write_all(m, LEN + 1);
    CHECK(count == UNCOUNTED_AWAY && uncounted_take(&all) == NULL);
    uint64_t most = (UNCOUNTED_AWAY + 1) * UNCOUNTED_ITEMS * (LEN + 1);
    CHECK(m->totals.value_bytes <= KEYS * (LEN + 1) + most);
    bring_back();
    CHECK(m->totals.value_bytes == KEYS * (LEN + 1));
    free_map(m);
}

/* Who needs the sums counts what is away, which counts for nothing when it comes back, also if its
 * map is gone by then. */
static void test_counted_here_first(void) {
    uint64_t head[MAP_HEAD];
    map *m = new_map();
    write_all(m, LEN + 1);
    map_save_head(m, head);
    CHECK(count > 0 && head[MAP_HEAD_VALUE_BYTES] == KEYS * (LEN + 1) && group_follows(m));
    bring_back();
    CHECK(m->totals.value_bytes == KEYS * (LEN + 1));
    write_all(m, LEN + 2);
    CHECK(count > 0);
    free_map(m);
    bring_back();
    CHECK(group.totals.value_bytes == 0);
}

/* A codec is kept as long as there is a batch for it, though nothing is stored in it. */
static void test_codec_is_kept(void) {
    map *m = new_map();
    uint8_t codec = codecs_current_id(&all.codecs);
    write_all(m, LEN + 1);
    free_map(m);
    codecs_use(&all.codecs, CODEC_RAW);
    codecs_remove_unused(&all.codecs);
    CHECK(!codecs_in_use(&all.codecs, codec) && codecs_get(&all.codecs, codec));
    bring_back();
    codecs_remove_unused(&all.codecs);
    CHECK(!codecs_get(&all.codecs, codec));
}

int main(void) {
    CHECK(map_shared_init(&all, &mem_libc, 3));
    train();
    all.uncounted.exchange = keep;
    test_counted_by_another();
    test_nobody_counts();
    test_counted_here_first();
    test_codec_is_kept();
    map_shared_free(&all);
    return test_report("uncounted");
}
