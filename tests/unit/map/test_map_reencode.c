/* No step works on more bytes than it is given, whatever the records hold: re-encoding, splitting,
 * merging, expiring and evicting where many large records share a bucket. */
#include "../test.h"
#include "codec/codec_train.h"
#include "group.h"
#include "map/map_evict.h"
#include "map/map_expire.h"
#include "map/map_inside.h"
#include "map/map_reencode.h"
#include "words.h"

#include <string.h>

#define WORK    (32u << 10)
#define RECORDS 600
#define SMALL   2000 /* value bytes of records that other tests write, at most */

static const uint64_t secret[2] = {1, 2};
static const int64_t now_ms = 1700000000000;
static char text[1 << 20]; /* what values are cut from */

static codec *train(void) {
    static phrase_sample values[1000], key = {"doc:1000", 8};
    for (int i = 0; i < 1000; i++)
        values[i] = (phrase_sample){text + test_random() % (sizeof text - SMALL), SMALL};
    codec_samples s = {&key, 1, values, 1000, 0};
    return codec_train(&mem_libc, &s, 64 << 10, 3);
}

/* Neighbours, a hundred to a bucket; some keys are long ones. */
static size_t make_key(char *key, int i) {
    int long_part = i % 97 == 5 ? 3000 : 0;
    memset(key, 'k', (size_t)long_part);
    return (size_t)(long_part + sprintf(key + long_part, "doc:%d", 100000 + i));
}

/* From nothing to 900 KB, most of them large. */
static const char *make_value(int i, size_t *len) {
    static const size_t lens[] = {900000, 65536, 65537, 60000, 20000, 3000, 300, 0};
    *len = lens[i % 8];
    return text + (size_t)i * 64 % (sizeof text - 900000);
}

static void put(map *m, int i, int64_t at_ms) {
    char key[4000];
    size_t len;
    const char *value = make_value(i, &len);
    CHECK(map_store(m, key, make_key(key, i), value, len, at_ms, now_ms));
}

static void check(map *m, int i) {
    char key[4000];
    map_key k;
    map_pos pos;
    size_t len, wanted;
    const char *value = make_value(i, &wanted);
    map_key_init(m, &k, key, make_key(key, i));
    CHECK(map_find(m, &k, &pos));
    const uint8_t *got = map_value(m, &pos, &len);
    CHECK(got && len == wanted && !memcmp(got, value, len));
}

/* What the records of one codec hold, as far as another would write it in another way. */
typedef struct holding {
    map *m;
    uint8_t codec;
    uint64_t records, bytes, most;
} holding;

static bool add_record(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    holding *h = context;
    (void)key, (void)key_len;
    if (pos->p->codec != h->codec) return true;
    size_t len = map_value_len(h->m, pos);
    h->records++;
    if (len > CODEC_PHRASE_MAX) return true;
    h->bytes += len;
    if (len > h->most) h->most = len;
    return true;
}

static holding held_by(map *m, uint8_t codec) {
    holding h = {.m = m, .codec = codec};
    map_each_record(m, add_record, &h);
    return h;
}

/* Where the values that no codec writes anew lie: they stay there. */
static const large *places[RECORDS];

static bool note_place(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    char number[7] = "";
    size_t len;
    (void)context;
    memcpy(number, key + key_len - 6, 6);
    int i = atoi(number) - 100000;
    make_value(i, &len);
    if (len <= CODEC_PHRASE_MAX) return true;
    const large *at = page_large(pos->p, pos->slot);
    CHECK(at != NULL && (places[i] == NULL || places[i] == at));
    places[i] = at;
    return true;
}

static void note_places(map *m) {
    map_each_record(m, note_place, m);
}

static map *filled(map_shared *all, map_group *group) {
    map *m = map_new(all, secret);
    *group = (map_group){0};
    memset(places, 0, sizeof places);
    map_join(m, group);
    for (int i = 0; i < RECORDS; i++)
        put(m, i, i % 3 ? EXPIRY_NEVER : now_ms + 100000 + i * 1000000);
    CHECK(map_sane(m) && m->totals.large > RECORDS / 2);
    return m;
}

static void reencode_in_steps(map_shared *all) {
    map_group group;
    codecs_use(&all->codecs, 1);
    map *m = filled(all, &group);
    note_places(m);
    codecs_use(&all->codecs, 2);
    uint64_t before = 0;
    int steps = 0;
    for (uint32_t i = 0; i < m->buckets;) {
        map_step step = map_reencode(m, i, expiry_ticks(now_ms), WORK, NULL);
        holding now = held_by(m, 2);
        /* One value of up to CODEC_PHRASE_MAX is a step by itself. */
        CHECK(step != MAP_FAILED && now.bytes - before <= CODEC_PHRASE_MAX);
        before = now.bytes;
        steps++;
        CHECK(group_follows(m) && (steps % 50 || map_sane(m)));
        i += step == MAP_DONE;
    }
    CHECK(before / CODEC_PHRASE_MAX <= (uint64_t)steps && before > 64 * WORK);
    CHECK(held_by(m, 1).records == 0 && held_by(m, 2).records == RECORDS && map_sane(m));
    note_places(m);
    for (int i = 0; i < RECORDS; i++) check(m, i);
    map_free(m);
}

static void bring_to_codec(map *m) {
    for (uint32_t i = 0; i < m->buckets;) {
        map_step step = map_reencode(m, i, expiry_ticks(now_ms), WORK, NULL);
        CHECK(step != MAP_FAILED);
        i = step == MAP_DONE ? i + 1 : map_bucket_or_last(m, i);
    }
}

/* What was stored before anything was learned takes a tenth then, and one pass merges all buckets
 * that there are too many. */
static void merged_in_one_pass(map_shared *all) {
    char key[40];
    codecs_use(&all->codecs, CODEC_RAW);
    map *m = map_new(all, secret);
    for (int i = 0; i < 2000; i++)
        CHECK(map_store(m, key, (size_t)sprintf(key, "raw:%d:x", i), text + i, 300, EXPIRY_NEVER,
                        now_ms));
    CHECK(m->buckets > 50);
    codecs_use(&all->codecs, 2);
    bring_to_codec(m);
    uint32_t buckets = m->buckets;
    bring_to_codec(m);
    CHECK(m->buckets == buckets && buckets < 20 && map_sane(m));
    map_free(m);
}

static uint64_t used_in_pages(map *m) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < m->buckets; i++) {
        uint32_t n;
        page **pages = bucket_pages(map_bucket(m, i), &n);
        for (uint32_t k = 0; k < n; k++) used += pages[k]->used;
    }
    return used;
}

/* Room that is left in every page, too little for a command to write the bucket anew, is taken out
 * on the way. */
static void full_pages(map_shared *all) {
    char key[40];
    uint64_t before = 0, after = 0, used = 0;
    for (int records = 100; records < 3000; records += 100) {
        map *m = map_new(all, secret);
        for (int i = 0; i < records; i++)
            CHECK(map_store(m, key, (size_t)sprintf(key, "%d:x", i), text + i, 20, EXPIRY_NEVER,
                            now_ms));
        for (int i = 0; i < records; i += 9) {
            map_key k;
            map_pos pos;
            map_key_init(m, &k, key, (size_t)sprintf(key, "%d:x", i));
            CHECK(map_find(m, &k, &pos));
            map_delete(m, &k, &pos, expiry_ticks(now_ms));
        }
        before += m->totals.page_bytes;
        bring_to_codec(m);
        after += m->totals.page_bytes;
        used += used_in_pages(m);
        CHECK(map_sane(m));
        map_free(m);
    }
    CHECK(before - used > used / 12 && after - used < used / 20);
}

/* A last page that would be whole for little becomes two. */
static void last_page(map_shared *all) {
    char key[40];
    uint64_t bytes = 0, used = 0;
    for (int records = 215; records < 290; records += 3) {
        map *m = map_new(all, secret);
        for (int i = 0; i < records; i++)
            CHECK(map_store(m, key, (size_t)sprintf(key, "%d:x", i), text + i, 20, EXPIRY_NEVER,
                            now_ms));
        bring_to_codec(m);
        CHECK(m->buckets == 1 && m->totals.pages <= 2 && map_sane(m));
        bytes += m->totals.page_bytes;
        used += used_in_pages(m);
        map_free(m);
    }
    CHECK(used > 25 * 2560 && bytes - used < used / 14);
}

/* Splits and merges leave every record with its codec, and large ones where they are. */
static void split_and_merge(map_shared *all) {
    map_group group;
    codecs_use(&all->codecs, 1);
    map *m = filled(all, &group);
    codecs_use(&all->codecs, 2);
    uint32_t buckets = m->buckets;
    char key[40];
    for (int i = 0; i < 20000; i++)
        CHECK(map_store(m, key, (size_t)sprintf(key, "other:%d", i), text + i, 100, EXPIRY_NEVER,
                        now_ms));
    CHECK(m->buckets > 2 * buckets && map_sane(m));
    CHECK(held_by(m, 1).records == RECORDS);
    /* Nothing of an old codec goes to a bucket that a pass may have come by. */
    for (int i = 0; i < 20000; i++) {
        map_key k;
        map_pos pos;
        map_key_init(m, &k, key, (size_t)sprintf(key, "other:%d", i));
        CHECK(map_find(m, &k, &pos));
        map_delete(m, &k, &pos, expiry_ticks(now_ms));
        CHECK(i % 500 || group_follows(m));
    }
    CHECK(held_by(m, 1).records == RECORDS && map_sane(m));
    note_places(m);
    buckets = m->buckets;
    bring_to_codec(m);
    CHECK(m->buckets < buckets && map_sane(m) && held_by(m, 2).records == RECORDS);
    for (int i = 0; i < RECORDS; i++) check(m, i);
    map_free(m);
}

/* A bucket has few large records, unless they are neighbours. */
static void few_in_a_bucket(map_shared *all) {
    map *m = map_new(all, secret);
    char key[40];
    for (int i = 0; i < 5000; i++)
        CHECK(map_store(m, key, (size_t)sprintf(key, "large%d:x", i), text + i, 70000, EXPIRY_NEVER,
                        now_ms));
    for (uint32_t i = 0; i < m->buckets; i++) {
        holding h = {.m = m, .codec = codecs_current_id(&all->codecs)};
        map_each(m, i, add_record, &h);
        CHECK(h.records < 200);
    }
    CHECK(map_sane(m));
    map_free(m);
}

/* An expiry that its page has no room for moves the record, and not its value. */
static void expiry_without_room(map_shared *all) {
    map_group group;
    map *m = filled(all, &group);
    note_places(m);
    codecs_use(&all->codecs, 1);
    for (int i = 0; i < RECORDS; i++) {
        char key[4000];
        map_key k;
        map_pos pos;
        map_key_init(m, &k, key, make_key(key, i));
        CHECK(map_find(m, &k, &pos));
        uint16_t code = expiry_code(now_ms + 5000 + i, now_ms);
        CHECK(map_set_expiry(m, &k, &pos, code, expiry_ticks(now_ms)) && group_follows(m));
    }
    CHECK(map_sane(m) && m->totals.expiring == RECORDS);
    CHECK(held_by(m, 2).records == RECORDS);
    note_places(m);
    map_free(m);
}

static void told(void *context, const uint8_t *key, size_t len) {
    (void)key, (void)len;
    ++*(int *)context;
}

/* Neither frees much more at a time than it may. */
static void frees_few(map_shared *all) {
    map_group group;
    int gone = 0;
    map *m = filled(all, &group);
    map_eviction how = {.order = MAP_EVICT_RANDOM, .now_ms = now_ms};
    size_t most = 1 << 20; /* one record */
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t before = m->totals.large_bytes;
        map_evict(m, i % m->buckets, &how, told, &gone);
        CHECK(before - m->totals.large_bytes <= MAP_EVICT_BYTES + most);
        before = m->totals.large_bytes;
        map_expire(m, i % m->buckets, now_ms + 1000000LL * i, 128, told, &gone);
        CHECK(before - m->totals.large_bytes <= MAP_EXPIRE_BYTES + most && group_follows(m));
    }
    CHECK(gone > 0 && m->totals.records == RECORDS - (uint64_t)gone && map_sane(m));
    map_free(m);
}

int main(void) {
    map_shared all;
    CHECK(map_shared_init(&all, &mem_libc, 3));
    fill_with_words(text, sizeof text);
    CHECK(codecs_add(&all.codecs, train()) == 1 && codecs_add(&all.codecs, train()) == 2);
    reencode_in_steps(&all);
    split_and_merge(&all);
    merged_in_one_pass(&all);
    full_pages(&all);
    last_page(&all);
    few_in_a_bucket(&all);
    expiry_without_room(&all);
    frees_few(&all);
    map_shared_free(&all);
    return test_report("map re-encoding");
}
