/* A map against a plain table: random writes, overwrites, deletes and expiries, with map_sane(). */
#include "../test.h"
#include "group.h"
#include "map/map.h"

#include <string.h>

#define KEYS 3000

static const uint64_t secret[2] = {1, 2};
static const int64_t now_ms = 1700000000000;

typedef struct expected {
    bool there;
    size_t len;
    uint8_t byte; /* the value is `len` times this, with a counter in it */
    int64_t ttl;  /* 0: none */
} expected;

static expected model[KEYS];

/* Keys of all kinds: with suffixes, leading zeros, digits only, binary, long. */
static size_t make_key(char *key, int i) {
    switch (i % 6) {
    case 0:
        return (size_t)sprintf(key, "KEY:%d", i);
    case 1:
        return (size_t)sprintf(key, "%06d", i);
    case 2:
        return (size_t)sprintf(key, "user:%d:profile", i);
    case 3:
        return (size_t)sprintf(key, "000000000000000000000000%d", 100000 + i);
    case 4:
        memset(key, 'x', 1500);
        return 1500 + (size_t)sprintf(key + 1500, "%d", i);
    default:
        key[0] = 0;
        key[1] = (char)(i >> 8);
        key[2] = (char)i;
        return i == 5 ? 0 : 3;
    }
}

static size_t make_value(uint8_t *value, const expected *e) {
    for (size_t i = 0; i < e->len; i++) value[i] = (uint8_t)(e->byte + i * i);
    return e->len;
}

static size_t random_len(void) {
    switch (test_random() % 8) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return 200 + test_random() % 100;
    case 3:
        return test_random() % 3000;
    default:
        return test_random() % 100;
    }
}

/* Writes record i as the model has it. */
static void put_expected(map *m, int i) {
    static uint8_t value[100000];
    char key[2000];
    map_key k;
    map_pos pos;
    codec_value encoded;
    const expected *e = &model[i];
    size_t len = make_value(value, e);
    map_key_init(m, &k, key, make_key(key, i));
    bool found = map_find(m, &k, &pos);
    uint16_t code = e->ttl ? expiry_code(now_ms + e->ttl, now_ms) : EXPIRY_NONE;
    CHECK(map_encode(m->shared, value, len, &encoded));
    CHECK(map_put(m, &k, found ? &pos : NULL, &encoded, code, expiry_ticks(now_ms)));
}

static void put(map *m, int i) {
    model[i] = (expected){true, random_len(), (uint8_t)test_random(), 0};
    if (test_random() % 2) model[i].ttl = 1000 + (int64_t)(test_random() % 100000000);
    put_expected(m, i);
}

static void check_one(map *m, int i) {
    static uint8_t value[100000];
    char key[2000];
    map_key k;
    map_pos pos;
    const expected *e = &model[i];
    map_key_init(m, &k, key, make_key(key, i));
    CHECK(map_find(m, &k, &pos) == e->there);
    if (!e->there) return;
    size_t len, wanted = make_value(value, e);
    const uint8_t *got = map_value(m, &pos, &len);
    CHECK(got && len == wanted && !memcmp(got, value, len));
    CHECK(map_value_len(m, &pos) == len);
    int64_t at = map_expiry_ms(&pos);
    if (e->ttl)
        CHECK(at >= now_ms + e->ttl && at <= now_ms + e->ttl + 2 + e->ttl / 1000);
    else
        CHECK(at == EXPIRY_NEVER);
}

static void delete (map *m, int i) {
    char key[2000];
    map_key k;
    map_pos pos;
    map_key_init(m, &k, key, make_key(key, i));
    bool found = map_find(m, &k, &pos);
    CHECK(found == model[i].there);
    if (found) map_delete(m, &k, &pos, expiry_ticks(now_ms));
    model[i].there = false;
}

static void new_ttl(map *m, int i) {
    char key[2000];
    map_key k;
    map_pos pos;
    if (!model[i].there) return;
    map_key_init(m, &k, key, make_key(key, i));
    CHECK(map_find(m, &k, &pos));
    model[i].ttl = test_random() % 3 ? 1 + (int64_t)(test_random() % 10000000000) : 0;
    uint16_t code = model[i].ttl ? expiry_code(now_ms + model[i].ttl, now_ms) : EXPIRY_NONE;
    CHECK(map_set_expiry(m, &k, &pos, code, expiry_ticks(now_ms)));
}

/* Tight pages: a value that shrinks and gets the first expiry of its page. */
static void shrink_into_expiry(map_shared *all) {
    for (int records = 1; records < 12; records++) {
        for (size_t shorter = 0; shorter < 20; shorter++) {
            map *m = map_new(all, secret);
            for (int i = 0; i < records; i++) model[i] = (expected){true, 30, (uint8_t)i, 0};
            for (int i = 0; i < records; i++) put_expected(m, i);
            int last = records - 1;
            model[last] = (expected){true, 30 - shorter, 99, 5000};
            put_expected(m, last);
            for (int i = 0; i < records; i++) check_one(m, i);
            CHECK(map_sane(m));
            map_free(m);
        }
    }
    memset(model, 0, sizeof model);
}

static bool count_visit(void *context, const uint8_t *key, size_t len, const map_pos *pos) {
    (void)key, (void)len, (void)pos;
    ++*(uint64_t *)context;
    return true;
}

static void check_all(map *m) {
    uint64_t there = 0, seen = 0;
    for (int i = 0; i < KEYS; i++) {
        check_one(m, i);
        there += model[i].there;
    }
    CHECK(map_each_record(m, count_visit, &seen));
    CHECK(there == m->totals.records && seen == there);
}

/* Random traffic over the first `keys` keys; every invariant is checked after every `often` steps.
 */
static void traffic(map *m, int keys, int steps, int often) {
    for (int round = 0; round < 4; round++) {
        int deletes = round % 2 ? 8 : 2;
        for (int step = 0; step < steps; step++) {
            int i = (int)(test_random() % (uint64_t)keys), what = (int)(test_random() % 12);
            if (what < deletes)
                delete (m, i);
            else if (what == 11)
                new_ttl(m, i);
            else
                put(m, i);
            CHECK(group_follows(m));
            if (step % often == 0) CHECK(map_sane(m));
            check_one(m, i);
        }
        check_all(m);
        CHECK(map_sane(m));
    }
    for (int i = 0; i < keys; i++) delete (m, i);
    CHECK(map_sane(m) && m->totals.records == 0 && m->totals.page_bytes == 0 && m->buckets == 1);
}

/* The bytes that page.h shows. */
static void worked_example(map_shared *all) {
    const uint8_t front[] = {0x40, 0,    0x1e, 0,    1, 0,    0,    2,    0,
                             0,    0xe2, 0xa7, 0xca, 0, 0x89, 0x0c, 0x81, 0x27};
    const uint8_t payload[] = "\x07\xffuser:1\xff"
                              "Ada";
    map *m = map_new(all, secret);
    CHECK(map_store(m, "user:1", 6, "Ada", 3, now_ms + 60000, now_ms));
    CHECK(m->totals.records == 1 && m->totals.page_bytes == 64);
    const uint8_t *bytes = (const uint8_t *)m->first[0].pages[0];
    CHECK(!memcmp(bytes, front, sizeof front));
    CHECK(!memcmp(bytes + 52, payload, 12));
    map_free(m);
}

/* What map_store() finds there it writes over. */
static void store_twice(map_shared *all) {
    map *m = map_new(all, secret);
    map_key k;
    map_pos pos;
    size_t len;
    CHECK(map_store(m, "k", 1, "one", 3, EXPIRY_NEVER, now_ms));
    CHECK(map_store(m, "k", 1, "three", 5, now_ms + 5000, now_ms));
    CHECK(map_sane(m) && m->totals.records == 1 && m->totals.expiring == 1);
    map_key_init(m, &k, "k", 1);
    CHECK(map_find(m, &k, &pos) && !memcmp(map_value(m, &pos, &len), "three", 5) && len == 5);
    map_free(m);
}

/* Two maps in a group, each of which leaves it. */
static void two_in_a_group(map_shared *all) {
    map_group group = {0}, empty = {0};
    map *a = map_new(all, secret), *b = map_new(all, secret);
    map_join(a, &group);
    for (int i = 0; i < 5000; i++) {
        char key[2000];
        uint8_t value[50] = {0};
        size_t len = make_key(key, i);
        CHECK(map_store(i % 3 ? a : b, key, len, value, (size_t)i % 50, EXPIRY_NEVER, now_ms));
        if (i == 1000) map_join(b, &group);
    }
    CHECK(group.maps == 2 && group.buckets == a->buckets + (uint64_t)b->buckets);
    CHECK(group.totals.records == 5000 && a->totals.records < 5000 && group.buckets > 4);
    CHECK(group.totals.page_bytes == a->totals.page_bytes + b->totals.page_bytes);
    map_leave(a);
    map_leave(a);
    CHECK(group_follows(b));
    map_leave(b);
    CHECK(!memcmp(&group, &empty, sizeof group));
    map_free(a);
    map_free(b);
}

/* What lengths of 32 bits, or of 31 for keys, cannot say is refused before it is looked at. */
static void too_long(map_shared *all) {
    map *m = map_new(all, secret);
    map_key k;
    codec_value value = {.bytes = (const uint8_t *)"", .len = (size_t)5 << 30};
    map_key_init(m, &k, "key", 3);
    CHECK(!map_put(m, &k, NULL, &value, EXPIRY_NONE, 0));
    value.len = MAP_RECORD_MAX - 2;
    CHECK(!map_put(m, &k, NULL, &value, EXPIRY_NONE, 0));
    CHECK(m->totals.records == 0 && map_sane(m));
    map_free(m);
}

int main(void) {
    map_shared all;
    CHECK(map_shared_init(&all, &mem_libc, 3));
    worked_example(&all);
    store_twice(&all);
    two_in_a_group(&all);
    shrink_into_expiry(&all);
    too_long(&all);
    map_group group = {0};
    map *m = map_new(&all, secret);
    CHECK(m && map_sane(m));
    map_join(m, &group);
    traffic(m, 300, 2000, 1);
    traffic(m, KEYS, 8000, 500);
    map_free(m);
    map_shared_free(&all);
    return test_report("map");
}
