/* Pages that are written anew aside take the place of what they were copied from, unless that was
 * written to meanwhile; and nothing is lost, whatever happens to the map in between. */
#include "../test.h"
#include "codec/codec_train.h"
#include "group.h"
#include "map/map_inside.h"
#include "map/map_recode.h"
#include "map/map_reencode.h"
#include "map/map_save.h"
#include "words.h"

#include <string.h>

#define RECORDS 3000
#define LONGEST 20000 /* value, bytes */

static const uint64_t secret[2] = {1, 2};
static const int64_t now_ms = 1700000000000;
static char text[1 << 18]; /* what values are cut from */

/* What each record is to be. */
static struct {
    uint32_t from, len; /* in the text; len UINT32_MAX: there is no record */
    int64_t at_ms;
} model[RECORDS];

/* Neighbours, and every fifth alone. */
static size_t make_key(char *key, int i) {
    return (size_t)sprintf(key, i % 5 ? "user:%d" : "user:%d:name", 100000 + i);
}

static void set_to(map *m, int i, uint32_t len) {
    char key[32];
    static const int64_t ttls[] = {60000, 3600000, 90000000};
    model[i].from = (uint32_t)(test_random() % (sizeof text - LONGEST));
    model[i].len = len;
    model[i].at_ms = test_random() % 2 ? EXPIRY_NEVER : now_ms + ttls[test_random() % 3];
    CHECK(map_store(m, key, make_key(key, i), text + model[i].from, model[i].len, model[i].at_ms,
                    now_ms));
}

static void set(map *m, int i) {
    uint32_t most = test_random() % 500 ? 200 : 5000; /* bytes: some are large */
    set_to(m, i, (uint32_t)(test_random() % most));
}

static bool find(map *m, int i, map_key *k, map_pos *pos) {
    static char key[32];
    map_key_init(m, k, key, make_key(key, i));
    return map_find(m, k, pos);
}

static void unset(map *m, int i) {
    map_key k;
    map_pos pos;
    if (find(m, i, &k, &pos)) map_delete(m, &k, &pos, expiry_ticks(now_ms));
    model[i].len = UINT32_MAX;
}

static void check(map *m) {
    uint64_t records = 0;
    for (int i = 0; i < RECORDS; i++) {
        map_key k;
        map_pos pos;
        size_t len;
        bool there = find(m, i, &k, &pos);
        CHECK(there == (model[i].len != UINT32_MAX));
        if (!there) continue;
        const uint8_t *value = map_value(m, &pos, &len);
        CHECK(value && len == model[i].len && !memcmp(value, text + model[i].from, len));
        int64_t at_ms = map_expiry_ms(&pos);
        CHECK(model[i].at_ms == EXPIRY_NEVER
                  ? at_ms == EXPIRY_NEVER
                  : at_ms >= model[i].at_ms && at_ms <= model[i].at_ms + 200000);
        records++;
    }
    CHECK(records == m->totals.records && map_sane(m) && group_follows(m));
}

static uint8_t train(map_shared *s, size_t bytes) {
    static phrase_sample values[1000], keys[100];
    static char names[100][32];
    for (int i = 0; i < 1000; i++)
        values[i] = (phrase_sample){text + test_random() % (sizeof text - 200), 200};
    for (int i = 0; i < 100; i++)
        keys[i] =
            (phrase_sample){names[i], (uint32_t)make_key(names[i], (int)(test_random() % RECORDS))};
    codec_samples samples = {keys, 100, values, 1000, 0};
    return (uint8_t)codecs_add(&s->codecs, codec_train(&mem_libc, &samples, bytes, 3));
}

static void anything(map *m) {
    int i = (int)(test_random() % RECORDS);
    map_key k;
    map_pos pos;
    switch (test_random() % 4) {
    case 0:
        set(m, i);
        break;
    case 1:
        unset(m, i);
        break;
    case 2:
        if (find(m, i, &k, &pos)) map_note_use(m, &pos);
        break;
    default:
        if (!find(m, i, &k, &pos) || model[i].at_ms == EXPIRY_NEVER) return;
        model[i].at_ms = now_ms + 7200000;
        CHECK(
            map_set_expiry(m, &k, &pos, expiry_code(model[i].at_ms, now_ms), expiry_ticks(now_ms)));
    }
}

static uint64_t left; /* pages that recode() last met and could not write anew */

/* All pages that are to be written anew, with so many changes between copying and putting back a
 * batch. Returns how many took their places. */
static uint64_t recode(map *m, int changes) {
    static codec_workspace work;
    static recode_batch b;
    mem_retired old = {0};
    uint64_t done = 0;
    left = 0;
    CHECK(workspace_init(&work, &mem_libc));
    for (uint32_t bucket = 0; bucket < m->buckets;) {
        recode_begin(&b, m->shared);
        for (; bucket < m->buckets && recode_fill(&b, m, bucket); bucket++) continue;
        CHECK(b.count > 0 || bucket == m->buckets);
        for (uint32_t i = 0; i < b.count; i++) recode_page(&b, i, &work);
        for (int i = 0; i < changes; i++) anything(m);
        for (uint32_t i = 0; i < b.count; i++)
            done += recode_put(&b, i, m, expiry_ticks(now_ms), &old);
        CHECK(b.count == 0 || !recode_put(&b, 0, m, expiry_ticks(now_ms), NULL));
        left += b.left;
        recode_end(&b, m->shared);
    }
    mem_free_retired(&mem_libc, &old);
    workspace_free(&work);
    return done;
}

static uint64_t pages_of_old_codecs(const map *m) {
    uint64_t old = 0;
    for (uint32_t id = 0; id < CODECS_MAX; id++)
        if (id != codecs_current_id(&m->shared->codecs)) old += m->shared->codecs.pages[id];
    return old;
}

static void rest(map *m) {
    for (uint32_t i = 0; i < m->buckets; i++)
        while (map_reencode(m, map_bucket_or_last(m, i), expiry_ticks(now_ms), 1 << 20, NULL) ==
               MAP_MORE)
            continue;
    CHECK(pages_of_old_codecs(m) == 0);
}

static void try_it(bool uses, int changes) {
    map_shared s;
    map_group group = {0};
    CHECK(map_shared_init(&s, &mem_libc, 3));
    s.count_uses = uses;
    map *m = map_new(&s, secret);
    map_join(m, &group);
    for (int i = 0; i < RECORDS; i++) set(m, i);
    for (int i = 0; i < 500; i++) anything(m);
    uint64_t all = 0;
    for (int round = 0; round < 4; round++) {
        codecs_use(&s.codecs, round == 2 ? CODEC_RAW : train(&s, (64u << 10) << round));
        uint64_t pages = pages_of_old_codecs(m), done = recode(m, changes);
        check(m);
        /* As raw bytes they take more than a page. */
        CHECK(changes > 0 || round == 2 || done > pages / 2);
        all += done;
        rest(m);
        check(m);
        codecs_remove_unused(&s.codecs);
        CHECK(codecs_count(&s.codecs) == (round != 2));
    }
    CHECK(all > 0);
    map_leave(m);
    map_free(m);
    map_shared_free(&s);
}

/* What became of a batch while another codec came into use takes nobody's place. */
static void another_codec(void) {
    static recode_batch b;
    static codec_workspace work;
    map_shared s;
    map_group group = {0};
    CHECK(map_shared_init(&s, &mem_libc, 3) && workspace_init(&work, &mem_libc));
    map *m = map_new(&s, secret);
    map_join(m, &group);
    for (int i = 0; i < RECORDS; i++) set(m, i);
    codecs_use(&s.codecs, train(&s, 64 << 10));
    recode_begin(&b, &s);
    CHECK(recode_fill(&b, m, 0) && b.count > 0);
    recode_page(&b, 0, &work);
    codecs_use(&s.codecs, train(&s, 128 << 10));
    codecs_remove_unused(&s.codecs);
    CHECK(codecs_count(&s.codecs) == 2); /* the batch keeps the one that it is for */
    CHECK(!recode_put(&b, 0, m, expiry_ticks(now_ms), NULL));
    recode_end(&b, &s);
    codecs_remove_unused(&s.codecs);
    CHECK(codecs_count(&s.codecs) == 1);
    check(m);
    map_leave(m);
    map_free(m);
    map_shared_free(&s);
    workspace_free(&work);
}

typedef struct fast_pages {
    uint64_t count, used; /* bytes of all pages */
} fast_pages;

static fast_pages fast_in(const map *m) {
    fast_pages found = {0};
    for (uint32_t i = 0; i < m->buckets; i++) {
        uint32_t n;
        page **pages = bucket_pages(map_bucket(m, i), &n);
        for (uint32_t k = 0; k < n; k++) {
            found.count += (pages[k]->flags & PAGE_FAST) != 0;
            found.used += pages[k]->used;
        }
    }
    return found;
}

/* A file does not tell; older programs know no such flag. */
static void check_file_has_no_flag(map *m) {
    static uint8_t bytes[1 << 20];
    page header;
    for (uint32_t i = 0; i < m->buckets; i++) {
        CHECK(map_bucket_size(m, i) <= sizeof bytes);
        size_t len = map_bucket_save(m, i, bytes);
        for (size_t at = 2; at < len; at += header.used) {
            memcpy(&header, bytes + at, sizeof header);
            CHECK(!(header.flags & PAGE_FAST));
        }
    }
}

/* Values that were written fast take less when they are written anew, once; splitting pages on the
 * way does not make them forget it. */
static void encoded_fast(void) {
    map_shared s;
    map_group group = {0};
    CHECK(map_shared_init(&s, &mem_libc, 3));
    map *m = map_new(&s, secret);
    map_join(m, &group);
    for (int i = 0; i < RECORDS; i++) set(m, i);
    codecs_use(&s.codecs, train(&s, 256 << 10));
    rest(m);
    CHECK(fast_in(m).count == 0);
    for (int i = 0; i < RECORDS; i++) unset(m, i);
    for (int i = 0; i < RECORDS; i++) set(m, i);
    fast_pages before = fast_in(m);
    CHECK(before.count > m->totals.pages * 9 / 10 && s.codecs.fast > RECORDS * 9 / 10);
    check_file_has_no_flag(m);
    CHECK(recode(m, 0) >= before.count);
    check(m);
    CHECK(fast_in(m).count == 0 && fast_in(m).used < before.used);
    CHECK(recode(m, 0) == 0);
    set(m, 1);
    CHECK(fast_in(m).count == 1);
    map_leave(m);
    map_free(m);
    map_shared_free(&s);
}

/* What large values of an old codec become young, a few at a time, until there is no more room.
 * Returns how many. */
static uint64_t make_young(map *m, uint64_t limit) {
    uint64_t before = m->totals.young;
    m->shared->young.limit = m->shared->young.limit_moved = limit;
    map_step step = MAP_DONE;
    for (uint32_t i = 0; i < m->buckets && step != MAP_WAITS;) {
        step = map_make_young(m, i, 4 << 10);
        i += step == MAP_DONE;
        CHECK(m->shared->young.bytes <= limit);
    }
    CHECK((step == MAP_WAITS) == (m->totals.young < m->totals.large));
    return m->totals.young - before;
}

/* Pages that point to large values can be written anew when these are young. */
static void large_values(void) {
    map_shared s;
    map_group group = {0};
    CHECK(map_shared_init(&s, &mem_libc, 3));
    map *m = map_new(&s, secret);
    map_join(m, &group);
    for (int i = 0; i < RECORDS; i++) set_to(m, i, i % 50 ? 100 : LONGEST);
    CHECK(m->totals.large == RECORDS / 50);
    codecs_use(&s.codecs, train(&s, 64 << 10));
    rest(m);
    CHECK(m->totals.large == RECORDS / 50);
    check(m);
    codecs_use(&s.codecs, train(&s, 128 << 10));
    CHECK(recode(m, 0) < m->totals.pages && left > 0);
    uint64_t some = make_young(m, 100 << 10);
    CHECK(some > 0 && some < RECORDS / 50);
    check(m);
    CHECK(make_young(m, 2 << 20) == RECORDS / 50 - some);
    CHECK(recode(m, 0) > 0 && left == 0 && pages_of_old_codecs(m) == 0);
    check(m);
    CHECK(make_young(m, 2 << 20) == 0);
    map_leave(m);
    map_free(m);
    map_shared_free(&s);
}

/* What cannot be read keeps its page from being written anew, and nothing else. */
static void damaged_value(void) {
    map_shared s;
    map_group group = {0};
    map_key k;
    map_pos pos;
    CHECK(map_shared_init(&s, &mem_libc, 3));
    map *m = map_new(&s, secret);
    map_join(m, &group);
    for (int i = 0; i < RECORDS; i++) set_to(m, i, i % 50 ? 100 : LONGEST);
    CHECK(find(m, 0, &k, &pos));
    large *l = page_large(pos.p, pos.slot);
    memset(large_value(l) + l->value_len / 2, 0xff, l->value_len / 2);
    codecs_use(&s.codecs, train(&s, 128 << 10));
    s.young.limit = s.young.limit_moved = 2 << 20;
    for (uint32_t i = 0, times = 0; i < m->buckets; times++) {
        i += map_make_young(m, i, 4 << 10) == MAP_DONE;
        CHECK(times < RECORDS);
    }
    CHECK(m->totals.young == m->totals.large - 1);
    CHECK(recode(m, 0) > 0 && left == 1 && pages_of_old_codecs(m) == 1);
    for (uint32_t i = 0, times = 0; i < m->buckets; times++) {
        i += map_reencode(m, i, expiry_ticks(now_ms), 4 << 10, NULL) != MAP_MORE;
        CHECK(times < RECORDS);
    }
    map_leave(m);
    map_free(m);
    map_shared_free(&s);
}

int main(void) {
    fill_with_words(text, sizeof text);
    for (int uses = 0; uses < 2; uses++) {
        try_it(uses, 0);
        try_it(uses, 10);
        try_it(uses, 300);
    }
    another_codec();
    encoded_fast();
    large_values();
    damaged_value();
    return test_report("map_recode");
}
