/* Young values: what is written, read, moved, saved and freed while copies of it are being encoded
 * is what a plain table says it is, at every moment, and what comes back late changes nothing. */
#include "../test.h"
#include "codec/codec_train.h"
#include "group.h"
#include "map/map_copy.h"
#include "map/map_defrag.h"
#include "map/map_evict.h"
#include "map/map_expire.h"
#include "map/map_reencode.h"
#include "map/map_save.h"
#include "map/map_settle.h"
#include "map/map_uncounted.h"
#include "words.h"

#include <malloc.h>
#include <string.h>

#define KEYS      300
#define VALUE_MAX 4000
#define BATCHES   3
#define STEPS     30000

static const uint64_t secret[2] = {1, 2};
static int64_t now_ms = 1700000000000;
static char text[64 << 10];

typedef struct expected {
    bool there;
    size_t from, len; /* in the text */
    int64_t at_ms;
} expected;

static map_shared all;
static map_group group;
static expected model[KEYS];

typedef struct flight {
    young_batch batch;
    bool begun, encoded;
    map *from; /* NULL: it is gone */
} flight;
static flight flights[BATCHES];
static codec_workspace work; /* as an encoder's */

/* How often a whole page was asked for. */
static unsigned whole_pages;
static void *counting_alloc(size_t n) {
    whole_pages += n == PAGE_BYTES;
    return malloc(n);
}
static const mem counting = {counting_alloc, realloc, free, malloc_usable_size};

static void train_two(void) {
    static phrase_sample values[500], key = {"doc:1000", 8};
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 500; i++)
            values[i] = (phrase_sample){text + test_random() % (sizeof text - 500), 500};
        codec_samples s = {&key, 1, values, 500, 0};
        CHECK(codecs_add(&all.codecs, codec_train(&mem_libc, &s, 64 << 10, 3)) ==
              (uint32_t)turn + 1);
    }
}

/* Neighbours, keys without a suffix, and keys that can't be in a page. */
static size_t make_key(char *key, unsigned i) {
    size_t len = i % 50 == 7 ? 300 : i % 50 == 9 ? LARGE_LONG_KEY : 0;
    memset(key, 'k', len);
    return len + (size_t)sprintf(key + len, i % 7 ? "doc:%u" : "%u:doc", 1000 + i);
}

/* ---- checking -------------------------------------------------------------------------------- */

static void check(map *m, unsigned i) {
    char key[LARGE_LONG_KEY + 20];
    map_key k;
    map_pos pos;
    size_t len;
    const expected *e = &model[i];
    map_key_init(m, &k, key, make_key(key, i));
    CHECK(map_find(m, &k, &pos) == e->there);
    if (!e->there) return;
    CHECK(map_value_len(m, &pos) == e->len);
    const uint8_t *got = map_value(m, &pos, &len);
    CHECK(got && len == e->len && !memcmp(got, text + e->from, len));
    for (uint64_t i = test_random() % 4; i > 0; i--) { /* it becomes hot */
        got = map_read(m, &k, &pos, &len);
        CHECK(got && len == e->len && !memcmp(got, text + e->from, len));
    }
    CHECK((map_expiry_ms(&pos) == EXPIRY_NEVER) == (e->at_ms == EXPIRY_NEVER));
    if (test_random() % 4 == 0) map_touch(m, &pos);
}

static void check_all(map *m) {
    CHECK(map_sane(m) && hot_sane(&all.hot));
    CHECK(all.young.bytes == m->totals.young_bytes && group_follows(m));
    CHECK(all.young.maps <= 1 && (all.young.ring == m || !m->to_encode));
    for (unsigned i = 0; i < KEYS; i++) check(m, i);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void put(map *m, unsigned i) {
    char key[LARGE_LONG_KEY + 20];
    uint64_t random = test_random();
    expected *e = &model[i];
    static const size_t lens[] = {10, 255, 256, 300, 700, 1100, 2000, VALUE_MAX};
    size_t len = e->there && random % 3 == 0 ? e->len : lens[random % 8];
    *e = (expected){true, (random >> 8) % (sizeof text - VALUE_MAX), len,
                    random % 5 ? EXPIRY_NEVER : now_ms + 1 + (int64_t)(random >> 40) % 100000};
    CHECK(map_store(m, key, make_key(key, i), text + e->from, len, e->at_ms, now_ms));
}

static void delete_or_expire(map *m, unsigned i) {
    char key[LARGE_LONG_KEY + 20];
    map_key k;
    map_pos pos;
    expected *e = &model[i];
    map_key_init(m, &k, key, make_key(key, i));
    if (!map_find(m, &k, &pos)) return;
    if (test_random() % 3 == 0) {
        e->at_ms = e->at_ms == EXPIRY_NEVER ? now_ms + 50000 : EXPIRY_NEVER;
        CHECK(map_set_expiry(m, &k, &pos, expiry_code(e->at_ms, now_ms), expiry_ticks(now_ms)));
    } else {
        map_delete(m, &k, &pos, expiry_ticks(now_ms));
        e->there = false;
    }
}

static void gone(void *unused, const uint8_t *key, size_t len) {
    char name[LARGE_LONG_KEY + 20];
    (void)unused;
    for (unsigned i = 0; i < KEYS; i++)
        if (make_key(name, i) == len && !memcmp(name, key, len)) model[i].there = false;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static void take(map *m, flight *f) {
    if (f->begun) return;
    young_batch_begin(&f->batch, all.mem, &all, YOUNG_BATCH_BYTES >> test_random() % 8,
                      test_random() % 2 ? CODEC_CHEAPEST : CODEC_FAST);
    uint64_t now_ticks = expiry_ticks(now_ms);
    young_choice which = {now_ticks - test_random() % 1000, test_random() % 4 == 0};
    young_batch_fill(&f->batch, &all, which, now_ticks, 2);
    CHECK(!which.all || m->to_encode == NULL || f->batch.count > 0);
    *f = (flight){f->batch, true, false, m};
}

static void settle(flight *f) {
    if (!f->begun) return;
    if (!f->encoded) {
        for (uint32_t i = 0; i < f->batch.count; i++) young_batch_encode(&f->batch, i, &work);
        f->encoded = true;
        return;
    }
    for (uint32_t i = 0; f->from && i < f->batch.count; i++)
        map_settle(f->from, &f->batch, &f->batch.items[i], expiry_ticks(now_ms));
    young_batch_end(&f->batch, &all);
    f->begun = false;
}

/* ---- counting what has gone ------------------------------------------------------------------ */

static uncounted_batch *uncounted_away[UNCOUNTED_AWAY];

/* Puts what is full with the others, while there is room. */
static void exchange(void) {
    for (int i = 0; i < UNCOUNTED_AWAY; i++)
        if (!uncounted_away[i] && !(uncounted_away[i] = uncounted_take(&all))) return;
}

static void count_one(void) {
    uncounted_batch **b = &uncounted_away[test_random() % UNCOUNTED_AWAY];
    if (!*b) return;
    uncounted_count(*b);
    uncounted_end(&all, *b);
    *b = NULL;
}

static void toggle_counting(void) {
    all.uncounted.exchange = all.uncounted.exchange ? NULL : exchange;
    if (!all.uncounted.exchange) uncounted_count_out(&all);
}

/* ---- another map with the same records ------------------------------------------------------- */

static large *larges[KEYS];
static unsigned larges_at;

static bool note_large(void *unused, large **l) {
    (void)unused;
    larges[larges_at++] = *l;
    return true;
}

static bool load_large(void *m, large **at) {
    uint8_t bytes[LARGE_LONG_KEY + 20 + VALUE_MAX + 20];
    const large *l = larges[larges_at++];
    map_large_save(l, bytes);
    return (*at = map_large_load(m, bytes, map_large_size(l))) != NULL;
}

static map *saved_and_loaded(map *m) {
    static const uint8_t codec_ids[256] = {0, 1, 2};
    uint64_t head[MAP_HEAD];
    map_save_head(m, head);
    map *loaded = map_load_head(&all, head);
    for (uint32_t i = 0; i < m->buckets; i++) {
        size_t n = map_bucket_size(m, i);
        uint8_t *bytes = malloc(n);
        CHECK(map_bucket_save(m, i, bytes) == n);
        larges_at = 0;
        map_each_large(m, i, note_large, NULL);
        CHECK(map_bucket_load(loaded, i, bytes, n, codec_ids) == n);
        larges_at = 0;
        CHECK(map_each_large(loaded, i, load_large, loaded));
        free(bytes);
    }
    map_load_end(loaded, head);
    return loaded;
}

static map *new_map(void) {
    map *m = map_new(&all, secret);
    map_join(m, &group);
    return m;
}

static void free_map(map *m) {
    map_leave(m);
    map_free(m);
}

static map *replaced(map *m, map *by) {
    CHECK(by != NULL && by->totals.young >= m->totals.young);
    for (int i = 0; i < BATCHES; i++) flights[i].from = NULL;
    map_join(by, &group);
    free_map(m);
    return by;
}

static void *move_block(void *unused, void *block) {
    (void)unused;
    if (test_random() % 2) return NULL;
    size_t n = mem_libc.usable(block);
    void *moved = malloc(n);
    memcpy(moved, block, n);
    free(block);
    return moved;
}

static void defrag(map *m) {
    for (uint32_t i = 0; i < m->buckets; i++) map_defrag_bucket(m, i, move_block, NULL);
}

static void evict(map *m) {
    map_eviction how = {.order = MAP_EVICT_RANDOM, .now_ms = now_ms, .random = test_random()};
    map_evict(m, (uint32_t)(test_random() % m->buckets), &how, gone, NULL);
}

static map *rare_step(map *m) {
    uint32_t bucket = (uint32_t)(test_random() % m->buckets);
    switch (test_random() % 11) {
    case 10:
        toggle_counting();
        break;
    case 0:
        codecs_use(&all.codecs, (uint8_t)(test_random() % 3));
        break;
    case 1:
        evict(m);
        break;
    case 2:
        return replaced(m, saved_and_loaded(m));
    case 3:
        return replaced(m, map_copy(m));
    case 4:
        defrag(m);
        break;
    case 5:
        all.young.limit = (64u << 10) << test_random() % 3 * 4;
        break;
    case 6:
        map_leave(m);
        map_join(m, &group);
        break;
    case 7:
        map_shared_keep_hot(&all, test_random() % 4 * (16u << 20));
        break;
    case 8:
        hot_drop(&all.hot, test_random() % 10000);
        hot_pass(&all.hot, test_random() % 100);
        break;
    default:
        map_expire(m, bucket, now_ms, 100, gone, NULL);
    }
    return m;
}

static map *step(map *m) {
    unsigned i = (unsigned)(test_random() % KEYS);
    flight *f = &flights[test_random() % BATCHES];
    now_ms += (int64_t)(test_random() % 20);
    switch (test_random() % 17) {
    case 0:
        take(m, f);
        break;
    case 16:
        count_one();
        break;
    case 1:
    case 2:
        settle(f);
        break;
    case 3:
        map_reencode(m, (uint32_t)(test_random() % m->buckets), expiry_ticks(now_ms), 4000, NULL);
        break;
    case 4:
    case 5:
    case 6:
        delete_or_expire(m, i);
        break;
    case 7:
        if (test_random() % 8 == 0) m = rare_step(m);
        break;
    default:
        put(m, i);
    }
    check(m, i);
    return m;
}

/* A record is written over until the block that it was in is another's, while its value is with an
 * encoder; what was written last is there. */
static void test_late_results(void) {
    map *m = new_map();
    flight f = {.begun = false};
    map_pos pos;
    map_key k;
    CHECK(map_store(m, "session", 7, text, 700, EXPIRY_NEVER, now_ms));
    take(m, &f);
    while (f.batch.count == 0) {
        settle(&f);
        now_ms += 10;
        take(m, &f);
    }
    for (int i = 0; i < 5; i++)
        CHECK(map_store(m, "session", 7, text + i, 700u + 400u * (unsigned)i % 900, EXPIRY_NEVER,
                        now_ms));
    CHECK(map_store(m, "session", 7, text + 9, 700, EXPIRY_NEVER, now_ms));
    settle(&f);
    settle(&f);
    map_key_init(m, &k, "session", 7);
    CHECK(map_find(m, &k, &pos) && page_large(pos.p, pos.slot)->young);
    size_t len;
    const uint8_t *got = map_value(m, &pos, &len);
    CHECK(len == 700 && !memcmp(got, text + 9, 700));
    CHECK(all.young.spared == 6 && all.young.settled == 0 && map_sane(m));
    free_map(m);
    CHECK(all.young.bytes == 0);
}

/* When all is settled the map takes what it takes without young values. */
static void test_settled_size(void) {
    map *maps[2];
    codecs_use(&all.codecs, 1);
    for (int young = 0; young < 2; young++) {
        maps[young] = new_map();
        all.young.limit = young ? 64u << 20 : 0;
        for (int i = 0; i < 5000; i++) {
            char key[20];
            int len = sprintf(key, "doc:%d", 100000 + i);
            CHECK(map_store(maps[young], key, (size_t)len, text + i, 400, EXPIRY_NEVER, now_ms));
        }
    }
    CHECK(maps[1]->totals.young == 5000);
    flight f = {.begun = false};
    while (maps[1]->totals.young) {
        now_ms += 10;
        take(maps[1], &f);
        settle(&f);
        settle(&f);
        CHECK(!f.begun);
    }
    CHECK(map_sane(maps[1]));
    uint64_t at_once = maps[0]->totals.page_bytes, later = maps[1]->totals.page_bytes;
    CHECK(later <= at_once + at_once / 50 && maps[1]->totals.large == 0);
    free_map(maps[0]);
    free_map(maps[1]);
}

static void write_all(map *m, int count, size_t len) {
    char key[20];
    for (int i = 0; i < count; i++)
        CHECK(map_store(m, key, (size_t)sprintf(key, "doc:%d", 100000 + i), text + i, len,
                        EXPIRY_NEVER, now_ms));
}

/* Neighbours that are written over one after the other leave holes for what they will be, in one
 * bucket: it is not written anew for each of them, however full its pages were. */
static void test_written_over_in_turn(void) {
    codecs_use(&all.codecs, 1);
    for (int i = 0; i < 60; i++) {
        map *m = new_map();
        int count = i % 3 ? 100 : 2000;
        size_t len = YOUNG_VALUE_MIN + 10 * (size_t)i;
        all.young.limit = 0;
        write_all(m, count, len);
        all.young.limit = 64u << 20;
        whole_pages = 0;
        write_all(m, count, len);
        CHECK(m->totals.young == (uint64_t)count && map_sane(m));
        CHECK(whole_pages <= 3 * m->buckets);
        free_map(m);
    }
}

/* In memory neighbours are told apart by their tags; in files they have one, as ever. */
static void test_tags_of_neighbours(void) {
    static uint64_t bytes[PAGE_BYTES];
    map *m = new_map();
    bool seen[256] = {false};
    unsigned different = 0;
    char key[20];
    for (int i = 0; i < 100; i++)
        CHECK(map_store(m, key, (size_t)sprintf(key, "doc:%d", 1100 + i), text, 300, EXPIRY_NEVER,
                        now_ms));
    uint32_t n;
    page *p = bucket_pages(&m->first[0], &n)[0];
    CHECK(m->buckets == 1 && n == 1 && p->slots == 100);
    for (uint32_t i = 0; i < p->slots; i++) {
        different += !seen[page_tags(p)[i]];
        seen[page_tags(p)[i]] = true;
    }
    CHECK(different == PAGE_TAG_HEAD - PAGE_TAG_SINGLE);
    CHECK(map_bucket_save(m, 0, (uint8_t *)bytes) == map_bucket_size(m, 0));
    memmove(bytes, (uint8_t *)bytes + 2, p->used);
    const page *saved = (const page *)bytes;
    for (uint32_t i = 1; i < saved->slots; i++) CHECK(page_tags(saved)[i] == *page_tags(saved));
    free_map(m);
}

/* What a map that has left its group holds takes nothing of the limit: nobody encodes it. */
static void test_out_of_its_group(void) {
    map *m = new_map();
    CHECK(map_store(m, "one", 3, text, 1000, EXPIRY_NEVER, now_ms));
    CHECK(all.young.bytes >= 1000);
    map_leave(m);
    CHECK(all.young.bytes == 0);
    CHECK(map_store(m, "two", 3, text, 1000, EXPIRY_NEVER, now_ms) && all.young.bytes == 0);
    map_join(m, &group);
    CHECK(all.young.bytes == m->totals.young_bytes && all.young.bytes >= 2 * 1000 && map_sane(m));
    free_map(m);
}

/* A map of long values that are hot, as many as there may be. */
static map *map_of_hot_values(void) {
    map *m = new_map();
    char key[20];
    map_key k;
    map_pos pos;
    size_t len;
    codecs_use(&all.codecs, 1);
    all.young.limit = 0;
    for (int i = 0; i < 2000; i++)
        CHECK(map_store(m, key, (size_t)sprintf(key, "doc:%d", 10000 + i), text + i, 1000,
                        EXPIRY_NEVER, now_ms));
    all.young.limit = 1 << 20;
    map_shared_keep_hot(&all, UINT64_MAX);
    for (int i = 0; i < 8000; i++) {
        map_key_init(m, &k, key, (size_t)sprintf(key, "doc:%d", 10000 + i / 4));
        CHECK(map_find(m, &k, &pos) && map_read(m, &k, &pos, &len) && len == 1000);
        CHECK(all.hot.bytes <= all.hot.limit);
    }
    CHECK(all.hot.bytes > all.hot.limit / 2);
    return m;
}

/* Hot values and young ones share the limit; hot ones leave it to young ones. */
static void test_hot_values_yield(void) {
    map *m = map_of_hot_values();
    char key[20];
    for (int i = 0; i < 2000; i++) {
        CHECK(map_store(m, key, (size_t)sprintf(key, "doc:%d", 10000 + i), text + i + 1, 1000,
                        EXPIRY_NEVER, now_ms));
        CHECK(all.young.bytes + all.hot.bytes <= all.young.limit);
    }
    CHECK(all.young.bytes > all.young.limit / 4 * 3 && hot_sane(&all.hot));
    map_shared_keep_hot(&all, 0);
    hot_clear(&all.hot);
    free_map(m);
}

/* Where the limit has fallen, each new value drops a few hot ones; where there is none, no new one
 * is young, and none has to go for it. What is left goes between commands, as it does of an empty
 * store. */
static void test_hot_values_go_by_and_by(void) {
    map *m = map_of_hot_values();
    char key[20];
    uint32_t count = all.hot.count;
    for (int i = 0; i < 200; i++) {
        uint32_t before = all.hot.count;
        all.young.limit = i == 0 ? 0 : 128u << 10;
        CHECK(map_store(m, key, (size_t)sprintf(key, "new:%d", i), text + i, 1000, EXPIRY_NEVER,
                        now_ms));
        CHECK(before - all.hot.count <= (i == 0 ? 0 : 6));
        if (i == 20) CHECK(all.hot.count < count && all.hot.bytes > all.young.limit);
    }
    CHECK(all.young.bytes + all.hot.bytes <= all.young.limit && hot_sane(&all.hot));
    free_map(m);
    count = all.hot.count;
    map_shared_clear(&all);
    CHECK(count > 0 && all.hot.count == count);
}

static void test_model(void) {
    map *m = new_map();
    for (int i = 0; i < STEPS; i++) {
        m = step(m);
        if (i % 50 == 0) check_all(m);
    }
    check_all(m);
    CHECK(all.young.settled > 0 && all.young.spared > 0 && all.young.at_once > 0);
    CHECK(all.hot.read > 0);
    for (int i = 0; i < BATCHES; i++)
        while (flights[i].begun) settle(&flights[i]);
    check_all(m);
    free_map(m);
    CHECK(all.young.bytes == 0);
}

int main(void) {
    fill_with_words(text, sizeof text);
    CHECK(map_shared_init(&all, &counting, 3) && workspace_init(&work, &mem_libc));
    train_two();
    all.young.limit = 64u << 20;
    test_late_results();
    test_settled_size();
    test_written_over_in_turn();
    test_out_of_its_group();
    test_hot_values_yield();
    test_tags_of_neighbours();
    all.young.limit = 64u << 10;
    map_shared_keep_hot(&all, UINT64_MAX);
    test_model();
    test_hot_values_go_by_and_by();
    workspace_free(&work);
    map_shared_free(&all);
    return test_report("map_young");
}
