/*
 * Memory that runs out at every allocation in turn, in learning, loading, and a scenario of all
 * that is done with a map: what fails has changed nothing, what does not has done all, nothing
 * leaks.
 */
#include "../test.h"
#include "codec/codec_file.h"
#include "codec/codec_train.h"
#include "group.h"
#include "map/map_copy.h"
#include "map/map_expire.h"
#include "map/map_reencode.h"
#include "map/map_save.h"
#include "map/map_uncounted.h"

#include <malloc.h>
#include <string.h>

#define KEYS    120
#define STEPS   420
#define SAMPLES 300

static const uint64_t secret[2] = {3, 4};
static const int64_t start_ms = 1700000000000;

static long left = -1; /* allocations before one fails; -1: none fails */
static long live;      /* blocks */

static bool fails(void) {
    return left >= 0 && left-- == 0;
}
static void *test_alloc(size_t n) {
    if (fails()) return NULL;
    live++;
    return malloc(n);
}
static void *test_realloc(void *block, size_t n) {
    if (fails()) return NULL;
    live += block == NULL;
    return realloc(block, n);
}
static void test_free(void *block) {
    live -= block != NULL;
    free(block);
}
static const mem failing = {test_alloc, test_realloc, test_free, malloc_usable_size};

/* ---- records --------------------------------------------------------------------------------- */

static size_t make_key(char *key, int i) {
    if (i % 40 == 7) {
        memset(key, 'x', 1100);
        return 1100 + (size_t)sprintf(key + 1100, "%d", i);
    }
    return (size_t)sprintf(key, i % 3 ? "key:%d" : "user:%d:profile", 1000 + i);
}

/* Some go into pages, some are large; some compress as phrases, some with zstd, some not. */
static size_t make_value(char *value, int version) {
    size_t len = version % 17 == 0 ? 3000 : version % 5 == 0 ? 600 : (size_t)(version % 290);
    uint32_t state = (uint32_t)version * 2654435761u + 1;
    for (size_t i = 0; i < len; i++) {
        state = state * 1664525u + 1013904223u;
        value[i] =
            version % 4 ? "the quick brown fox "[(i + (size_t)version) % 20] : (char)(state >> 24);
    }
    return len;
}

/* ---- codecs ---------------------------------------------------------------------------------- */

static codec *train(void) {
    static char names[SAMPLES][1200], texts[SAMPLES][3000];
    static phrase_sample keys[SAMPLES], values[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        keys[i] = (phrase_sample){names[i], (uint32_t)make_key(names[i], i)};
        values[i] = (phrase_sample){texts[i], (uint32_t)make_value(texts[i], i * 5)};
    }
    codec_samples s = {keys, SAMPLES, values, SAMPLES, 0};
    return codec_train(&failing, &s, 700 << 10, 1);
}

/* A training takes seconds and allocates hundreds of times: other ones fail in every run. */
static void test_learning(void) {
    long n = 0;
    for (bool failed = true; failed; n += 1 + (long)(test_random() % (uint64_t)(1 + n / 3))) {
        long before = live;
        left = n;
        codec *c = train();
        failed = left == -1;
        left = -1;
        CHECK(c || failed);
        if (c) codec_free(&failing, c);
        CHECK(live == before);
    }
    CHECK(n > 10);
}

static void test_loading(const codec *learned) {
    size_t bytes = codec_save_size(learned);
    uint8_t *saved = malloc(bytes), *again = malloc(bytes);
    codec_save(learned, saved);
    long n = 0;
    for (bool failed = true; failed; n++) {
        long before = live;
        left = n;
        codec *c = codec_load(&failing, saved, bytes, 1);
        failed = left == -1;
        left = -1;
        CHECK((c == NULL) == failed);
        if (c) {
            CHECK(codec_save_size(c) == bytes);
            codec_save(c, again);
            CHECK(!memcmp(saved, again, bytes));
            codec_free(&failing, c);
        }
        CHECK(live == before);
    }
    CHECK(n > 3);
    free(saved);
    free(again);
}

/* ---- the scenario ---------------------------------------------------------------------------- */

typedef struct expected {
    bool there;
    int version; /* of the value */
    int64_t at_ms;
} expected;

static struct {
    map_shared all;
    map *m;
    map_group group;
    expected model[KEYS];
    int64_t now_ms;
} it;

static void check_all(map *m) {
    char key[1200], value[3000];
    map_key k;
    map_pos pos;
    for (int i = 0; i < KEYS; i++) {
        const expected *e = &it.model[i];
        map_key_init(m, &k, key, make_key(key, i));
        CHECK(map_find(m, &k, &pos) == e->there);
        if (!e->there) continue;
        size_t len, wanted = make_value(value, e->version);
        const uint8_t *got = map_value(m, &pos, &len);
        CHECK(got && len == wanted && !memcmp(got, value, len));
        int64_t at_ms = map_expiry_ms(&pos);
        if (e->at_ms == EXPIRY_NEVER)
            CHECK(at_ms == EXPIRY_NEVER);
        else if (e->at_ms <= it.now_ms)
            CHECK(at_ms <= it.now_ms + 1000);
        else
            CHECK(at_ms >= e->at_ms && at_ms <= e->at_ms + 1000);
    }
    CHECK(map_sane(m));
}

static void put(int i, int version) {
    char key[1200], value[3000];
    map_key k;
    map_pos pos;
    codec_value encoded;
    int64_t at_ms = version % 2 ? EXPIRY_NEVER : it.now_ms + 1000 * (1 + version % 900);
    map_key_init(it.m, &k, key, make_key(key, i));
    bool found = map_find(it.m, &k, &pos);
    if (map_encode(&it.all, value, make_value(value, version), &encoded) &&
        map_put(it.m, &k, found ? &pos : NULL, &encoded, expiry_code(at_ms, it.now_ms),
                expiry_ticks(it.now_ms)))
        it.model[i] = (expected){true, version, at_ms};
}

static void delete_or_set_expiry(int i, int version) {
    char key[1200];
    map_key k;
    map_pos pos;
    map_key_init(it.m, &k, key, make_key(key, i));
    if (!map_find(it.m, &k, &pos)) return;
    if (version % 3) {
        map_delete(it.m, &k, &pos, expiry_ticks(it.now_ms));
        it.model[i].there = false;
        return;
    }
    int64_t at_ms = it.now_ms + 50000;
    if (map_set_expiry(it.m, &k, &pos, expiry_code(at_ms, it.now_ms), expiry_ticks(it.now_ms)))
        it.model[i].at_ms = at_ms;
}

static void told(void *context, const uint8_t *key, size_t len) {
    char name[1200];
    (void)context;
    for (int i = 0; i < KEYS; i++)
        if (make_key(name, i) == len && !memcmp(name, key, len)) it.model[i].there = false;
}

static void copy(void) {
    map *second = map_copy(it.m);
    if (!second) return;
    long failing_at = left;
    left = -1;
    check_all(second);
    map_free(second);
    left = failing_at;
}

static bool gather_large(void *context, large **l) {
    large **next = context;
    while (*next) next++;
    *next = *l;
    return true;
}

typedef struct larges {
    map *m;
    large **next;
} larges;

static bool load_large(void *context, large **at) {
    larges *from = context;
    const large *l = *from->next++;
    uint8_t bytes[5000];
    CHECK(map_large_size(l) <= sizeof bytes);
    map_large_save(l, bytes);
    return (*at = map_large_load(from->m, bytes, map_large_size(l))) != NULL;
}

static bool load_bucket(map *to, uint32_t index) {
    static uint8_t codec_ids[256] = {0, 1, 2};
    static uint8_t bytes[1 << 20];
    large *kept[KEYS + 1] = {NULL};
    larges from = {to, kept};
    size_t n = map_bucket_save(it.m, index, bytes);
    map_each_large(it.m, index, gather_large, kept);
    return map_bucket_load(to, index, bytes, n, codec_ids) == n &&
           map_each_large(to, index, load_large, &from);
}

/* The map gives way to what is loaded of its own bytes, if that succeeds. */
static void save_and_load(void) {
    uint64_t head[MAP_HEAD];
    map_save_head(it.m, head);
    map *loaded = map_load_head(&it.all, head);
    if (!loaded) return;
    for (uint32_t i = 0; i < it.m->buckets; i++)
        if (!load_bucket(loaded, i)) {
            map_free(loaded);
            return;
        }
    map_load_end(loaded, head);
    map_leave(it.m);
    map_free(it.m);
    it.m = loaded;
    map_join(it.m, &it.group);
}

static void step(int number) {
    int i = number * 37 % KEYS;
    if (number == STEPS / 4 || number == STEPS / 2)
        codecs_use(&it.all.codecs, (uint8_t)(codecs_current_id(&it.all.codecs) + 1));
    switch (number % 20) {
    case 0:
        copy();
        break;
    case 5:
        save_and_load();
        break;
    case 10:
        it.now_ms += 40000;
        map_expire(it.m, (uint32_t)number % it.m->buckets, it.now_ms, 3, told, NULL);
        break;
    case 15:
        map_reencode(it.m, (uint32_t)number % it.m->buckets, expiry_ticks(it.now_ms), 2000, NULL);
        break;
    case 3:
    case 8:
        delete_or_set_expiry(i, number);
        break;
    default:
        put(i, number);
    }
}

static void exchange(void) {
    uncounted_batch *b = uncounted_take(&it.all);
    uncounted_count(b);
    uncounted_end(&it.all, b);
}

/* Fails at allocation n of the scenario, which goes on then; false if there are fewer. */
static bool run_scenario(codec *const learned[2], long n) {
    long before = live;
    memset(it.model, 0, sizeof it.model);
    it.now_ms = start_ms;
    CHECK(map_shared_init(&it.all, &failing, 1));
    for (int i = 0; i < 2; i++) CHECK(codecs_add(&it.all.codecs, learned[i]) == (uint32_t)i + 1);
    CHECK((it.m = map_new(&it.all, secret)) != NULL);
    memset(&it.group, 0, sizeof it.group);
    map_join(it.m, &it.group);
    it.all.uncounted.exchange = exchange;
    left = n;
    for (int number = 0; number < STEPS; number++) {
        bool armed = left >= 0;
        step(number);
        CHECK(group_follows(it.m));
        if (armed && left < 0) check_all(it.m);
    }
    bool failed = left == -1;
    left = -1;
    check_all(it.m);
    map_leave(it.m);
    map_free(it.m);
    it.all.codecs.by_id[1] = it.all.codecs.by_id[2] = NULL; /* for the next run */
    map_shared_free(&it.all);
    CHECK(live == before);
    return failed;
}

int main(void) {
    test_learning();
    codec *learned[2] = {train(), train()};
    test_loading(learned[0]);
    long n = 0;
    for (left = 0; !map_shared_init(&it.all, &failing, 1); left = ++n) continue;
    left = -1;
    map_shared_free(&it.all);
    n = 0;
    while (run_scenario(learned, n)) n++;
    CHECK(n > STEPS / 2); /* not a scenario that hardly allocates */
    for (int i = 0; i < 2; i++) codec_free(&failing, learned[i]);
    CHECK(live == 0);
    printf("memory: %ld allocations failed in turn\n", n);
    return test_report("memory");
}
