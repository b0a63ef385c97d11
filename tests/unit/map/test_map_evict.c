/* Use counts and eviction: against a plain table, through every write that moves records. */
#include "../test.h"
#include "group.h"
#include "map/map_evict.h"
#include "map/page.h"

#include <stdbool.h>
#include <string.h>

#define KEYS 4000

static const uint64_t secret[2] = {5, 6};
static const int64_t now_ms = 1700000000000;

typedef struct expected {
    bool there;
    int64_t ttl; /* ms, 0: none */
} expected;

static expected model[KEYS];
static uint64_t evicted;

/* With suffixes, without, and some that are large. */
static size_t make_key(char *key, int i) {
    if (i % 7 == 0)
        return (size_t)sprintf(key, "name-%c%c%c", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676);
    return (size_t)sprintf(key, "key:%d", i);
}

static int number_of(const char *key, size_t len) {
    if (!memcmp(key, "key:", 4)) {
        int n = 0;
        for (size_t i = 4; i < len; i++) n = 10 * n + key[i] - '0';
        return n;
    }
    int wanted = (key[5] - 'a') + (key[6] - 'a') * 26 + (key[7] - 'a') * 676;
    return wanted;
}

static bool find(map *m, int i, map_key *k, map_pos *pos, char *key) {
    map_key_init(m, k, key, make_key(key, i));
    return map_find(m, k, pos);
}

static void put(map *m, int i, int64_t ttl, uint8_t uses) {
    char key[40];
    uint8_t value[3000];
    map_key k;
    map_pos pos;
    codec_value encoded;
    size_t len = test_random() % (i % 50 == 0 ? sizeof value : 60);
    for (size_t j = 0; j < len; j++) value[j] = (uint8_t)test_random();
    bool found = find(m, i, &k, &pos, key);
    CHECK(found == model[i].there);
    k.uses = uses;
    uint16_t code = ttl ? expiry_code(now_ms + ttl, now_ms) : EXPIRY_NONE;
    CHECK(map_encode(m->shared, value, len, &encoded));
    CHECK(map_put(m, &k, found ? &pos : NULL, &encoded, code, expiry_ticks(now_ms)));
    model[i] = (expected){true, ttl};
}

static uint8_t uses_of(map *m, int i) {
    char key[40];
    map_key k;
    map_pos pos;
    CHECK(find(m, i, &k, &pos, key));
    return page_uses(pos.p, pos.slot);
}

static void use(map *m, int i) {
    char key[40];
    map_key k;
    map_pos pos;
    if (find(m, i, &k, &pos, key)) map_note_use(m, &pos);
}

static void gone(void *context, const uint8_t *key, size_t len) {
    (void)context;
    int i = number_of((const char *)key, len);
    CHECK(i >= 0 && i < KEYS && model[i].there);
    model[i].there = false;
    evicted++;
}

/* One round of the hand. */
static uint64_t evict_round(map *m, map_eviction *how) {
    uint64_t before = evicted;
    for (uint32_t b = 0; b < m->buckets; b++) map_evict(m, b, how, gone, NULL);
    return evicted - before;
}

/* Until something is evicted, or nothing can be. */
static uint64_t evict_some(map *m, map_eviction *how) {
    uint64_t n = 0;
    uint32_t calls = MAP_EVICT_CALLS + MAP_EVICT_ROUNDS * m->buckets;
    for (uint32_t i = 0; i < calls && n == 0; i += m->buckets) n = evict_round(m, how);
    return n;
}

static void check_all(map *m) {
    char key[40];
    map_key k;
    map_pos pos;
    uint64_t there = 0;
    CHECK(map_sane(m) && group_follows(m));
    for (int i = 0; i < KEYS; i++) {
        CHECK(find(m, i, &k, &pos, key) == model[i].there);
        there += model[i].there;
    }
    CHECK(m->totals.records == there);
}

static map *filled(map_shared *all, int64_t ttl, uint8_t uses) {
    static map_group group;
    map *m = map_new(all, secret);
    memset(&group, 0, sizeof group);
    map_join(m, &group);
    memset(model, 0, sizeof model);
    for (int i = 0; i < KEYS; i++) put(m, i, i % 2 ? ttl : 0, uses);
    return m;
}

/* Every count is where its record is, whatever was inserted, split and taken out around it. */
static void counts_stay_with_their_records(map_shared *all) {
    map *m = filled(all, 0, 0);
    for (int i = 0; i < KEYS; i += 3) use(m, i);
    for (int i = 0; i < KEYS; i += 9) use(m, i);
    for (int i = 1; i < KEYS; i += 3) put(m, i, 100000, 0); /* moves them about, adds expiries */
    for (int i = 2; i < KEYS; i += 6) {
        char key[40];
        map_key k;
        map_pos pos;
        CHECK(find(m, i, &k, &pos, key));
        map_delete(m, &k, &pos, expiry_ticks(now_ms));
        model[i].there = false;
    }
    check_all(m);
    for (int i = 0; i < KEYS; i++) {
        if (!model[i].there) continue;
        CHECK(uses_of(m, i) == (i % 9 == 0 ? 2 : i % 3 == 0 ? 1 : 0));
    }
    map_free(m);
}

static void unused_records_go_first(map_shared *all) {
    map *m = filled(all, 0, 0);
    for (int i = 0; i < KEYS; i += 4)
        for (int times = 0; times < 3; times++) use(m, i);
    map_eviction how = {.order = MAP_EVICT_LEAST_USED, .now_ms = now_ms};
    while (m->totals.records > KEYS / 2 && evict_some(m, &how) > 0) check_all(m);
    int used = 0;
    for (int i = 0; i < KEYS; i += 4) used += model[i].there;
    CHECK(used >= KEYS / 4 * 9 / 10);
    for (int rounds = 0; m->totals.records > 0; rounds++) {
        CHECK(rounds < 2000);
        evict_round(m, &how);
    }
    check_all(m);
    map_free(m);
}

/* What starts with a use outlives what was written before the hand came by. */
static void fresh_records_outlive_idle_ones(map_shared *all) {
    map *m = filled(all, 0, 1);
    map_eviction how = {.order = MAP_EVICT_LEAST_USED, .now_ms = now_ms};
    CHECK(evict_round(m, &how) == 0);
    CHECK(evict_some(m, &how) > 0); /* all counts are 0 now */
    uint64_t before = evicted;
    for (int i = 0; i < KEYS; i += 10)
        if (!model[i].there) put(m, i, 0, 1);
    while (evicted - before < KEYS / 4) CHECK(evict_some(m, &how) > 0);
    int fresh = 0, lost = 0;
    for (int i = 0; i < KEYS; i += 10)
        if (model[i].there)
            fresh++;
        else
            lost++;
    CHECK(fresh > lost);
    check_all(m);
    map_free(m);
}

static void only_expiring_ones_go(map_shared *all, map_evict_order order) {
    map *m = filled(all, 500000, 1);
    map_eviction how = {.order = order, .now_ms = now_ms, .expiring_only = true};
    for (int round = 0; m->totals.expiring > 0; round++) {
        CHECK(round < 2000);
        evict_round(m, &how);
    }
    for (int i = 0; i < KEYS; i++) CHECK(model[i].there == (i % 2 == 0));
    CHECK(evict_some(m, &how) == 0);
    check_all(m);
    map_free(m);
}

static void first_to_expire_goes_first(map_shared *all) {
    static map_group group;
    map *m = map_new(all, secret);
    memset(&group, 0, sizeof group);
    map_join(m, &group);
    memset(model, 0, sizeof model);
    for (int i = 0; i < KEYS; i++) put(m, i, i % 4 ? 10000000 : 5000, 0);
    map_eviction how = {.order = MAP_EVICT_FIRST_TO_EXPIRE, .now_ms = now_ms};
    CHECK(evict_some(m, &how) > 0);
    for (int i = 0; i < KEYS; i++) CHECK(model[i].there || i % 4 == 0);
    check_all(m);
    map_free(m);
}

static void expired_ones_go_before_all(map_shared *all) {
    map *m = filled(all, 5000, 0);
    map_eviction how = {.order = MAP_EVICT_LEAST_USED, .now_ms = now_ms + 10000};
    CHECK(evict_round(m, &how) > 0);
    for (int i = 0; i < KEYS; i += 2) CHECK(model[i].there);
    check_all(m);
    map_free(m);
}

int main(void) {
    map_shared all;
    CHECK(map_shared_init(&all, &mem_libc, 3));
    all.count_uses = true;
    counts_stay_with_their_records(&all);
    unused_records_go_first(&all);
    fresh_records_outlive_idle_ones(&all);
    only_expiring_ones_go(&all, MAP_EVICT_LEAST_USED);
    only_expiring_ones_go(&all, MAP_EVICT_RANDOM);
    only_expiring_ones_go(&all, MAP_EVICT_FIRST_TO_EXPIRE);
    first_to_expire_goes_first(&all);
    expired_ones_go_before_all(&all);
    map_shared_free(&all);
    return test_report("map evict");
}
