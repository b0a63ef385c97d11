/* Hot values: what is found is what was decoded of that very encoding, however keys, encodings and
 * codecs come and go and memory fails; and all there is stays within its room. */
#include "../test.h"
#include "map/hot.h"

#include <malloc.h>
#include <string.h>

#define KEYS  5000
#define STEPS 400000
#define LONG  2000

static bool fails;
static void *test_alloc(size_t n) {
    return fails ? NULL : malloc(n);
}
static size_t test_usable(void *block) {
    return malloc_usable_size(block);
}
static const mem may_fail = {test_alloc, realloc, free, test_usable};

static hot_values hot;

/* What a key's record is now. */
typedef struct state {
    uint32_t version;
    uint64_t codec;
} state;
static state model[KEYS];

static size_t encoding_of(unsigned i, uint8_t *bytes) {
    size_t len = HOT_ENCODED_MIN + i % 90;
    memset(bytes, (int)(model[i].version + i), len);
    memcpy(bytes, &i, sizeof i);
    memcpy(bytes + sizeof i, &model[i].version, sizeof model[i].version);
    return len;
}

static size_t value_of(unsigned i, uint8_t *bytes) {
    size_t len = 256 + i % (LONG - 256);
    memset(bytes, (int)(model[i].version * 7 + i), len);
    memcpy(bytes, &i, sizeof i);
    memcpy(bytes + sizeof i, &model[i].version, sizeof model[i].version);
    memcpy(bytes + 2 * sizeof i, &model[i].codec, sizeof model[i].codec);
    return len;
}

/* Some keys have the same mark. */
static uint32_t mark_of(unsigned i) {
    return hot_mark(i / 2 * 0x9e3779b97f4a7c15ULL, (uint8_t)(i / 2 % 100));
}

/* Reads a record. Whether it was found. */
static bool get(unsigned i, uint64_t room) {
    static uint8_t encoding[256], value[LONG];
    size_t len, wanted = value_of(i, value);
    uint64_t before = hot.bytes;
    hot_key key = {mark_of(i), model[i].codec, encoding, encoding_of(i, encoding)};
    const uint8_t *got = hot_find(&hot, &key, &len);
    if (got)
        CHECK(len == wanted && !memcmp(got, value, len));
    else
        hot_note(&hot, &key, value, wanted, room);
    CHECK(got || room == 0 || hot.bytes <= (before > room ? before : room));
    return got != NULL;
}

/* A record goes. */
static void take(unsigned i) {
    static uint8_t encoding[256], value[LONG];
    size_t len, count = hot.count;
    hot_key key = {mark_of(i), model[i].codec, encoding, encoding_of(i, encoding)};
    if (hot_take(&hot, &key, &len)) CHECK(len == value_of(i, value) && hot.count == count - 1);
}

static void pass_all(void) {
    for (int i = 0; i < 2; i++) hot_pass(&hot, hot_slots(&hot));
}

static void test_the_second_time(void) {
    CHECK(!get(0, 1 << 20) && !get(0, 1 << 20) && hot.count == 1);
    CHECK(get(0, 1 << 20) && get(0, 1 << 20) && hot.read == 2);
    model[0].version++; /* it was written over: what is kept of it goes when it is decoded */
    CHECK(!get(0, 1 << 20) && hot.count == 0);
    CHECK(!get(0, 1 << 20) && get(0, 1 << 20));
    model[0].codec++;
    CHECK(!get(0, 1 << 20) && !get(0, 1 << 20) && get(0, 1 << 20));
    take(0);
    CHECK(hot.count == 0 && !get(0, 1 << 20) && get(0, 1 << 20)); /* still remembered */
    CHECK(hot_sane(&hot));
    hot_pass(&hot, hot_slots(&hot));
    CHECK(hot.count == 1 && get(0, 1 << 20)); /* it was used: spared once */
    hot_pass(&hot, hot_slots(&hot));
    CHECK(hot.count == 1);
    hot_pass(&hot, hot_slots(&hot));
    CHECK(hot.count == 0 && hot.bytes == 0 && !hot.slots && hot_sane(&hot));
}

/* Nothing is kept without room, nor one value that takes all of it. */
static void test_room(void) {
    for (int i = 0; i < 3; i++) CHECK(!get(1, 0));
    CHECK(hot.bytes == 0);
    for (int i = 0; i < 3; i++) CHECK(!get(LONG - 257, 4 << 10));
    CHECK(hot.count == 0);
    hot_clear(&hot);
    CHECK(hot.bytes == 0 && hot_sane(&hot));
}

/* All are kept where there is room for all, and slots take little of it. */
static void test_many(void) {
    unsigned found = 0;
    for (int round = 0; round < 20; round++) {
        found = 0;
        for (unsigned i = 0; i < KEYS; i += 2) found += get(i, 1 << 30);
    }
    CHECK(found > KEYS / 2 * 95 / 100 && hot_sane(&hot));
    CHECK(hot_slots(&hot) * sizeof(hot_slot) <= hot.bytes / 8);
    uint64_t before = hot.bytes;
    CHECK(hot_drop(&hot, 100000) >= 100000 && hot.bytes + 100000 <= before);
    CHECK(hot_drop(&hot, SIZE_MAX) > 0 && hot_sane(&hot));
    pass_all();
    CHECK(hot.bytes == 0);
}

/* Where there is room for some of those that are read alike, they stay; until others are read. */
static void test_all_alike(void) {
    const uint64_t room = 1 << 20;
    unsigned found = 0;
    for (int round = 0; round < 20; round++) {
        found = 0;
        for (unsigned i = 0; i < KEYS; i += 2) found += get(i, room);
    }
    CHECK(hot.count > KEYS / 20 && found > hot.count / 2);
    for (int round = 0; round < 20; round++) {
        found = 0;
        for (unsigned i = 1; i < KEYS / 10; i += 2) found += get(i, room);
        hot_pass(&hot, hot_slots(&hot) / 4);
    }
    CHECK(found > KEYS / 20 * 9 / 10 && hot_sane(&hot));
    pass_all();
}

/* Where room has shrunk, who reads drops a few values, not all that are too much. */
static void test_less_room(void) {
    const uint64_t room = 512 << 10;
    for (unsigned i = 0; i < 3 * KEYS; i += 2) get(i % KEYS, 1 << 30);
    hot.limit = room;
    CHECK(hot.bytes > 4 * room && hot_is_too_much(&hot));
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t before = hot.bytes;
        get(i | 1, room);
        CHECK(before <= hot.bytes + 5 * (LONG + 256));
    }
    CHECK(hot.bytes <= room && !hot_is_too_much(&hot) && hot_sane(&hot));
    hot.limit = 0;
    CHECK(hot_is_too_much(&hot));
    pass_all();
    CHECK(hot.bytes == 0 && !hot_is_too_much(&hot));
}

static void test_model(void) {
    uint64_t room = 1 << 20;
    for (int i = 0; i < STEPS; i++) {
        uint64_t random = test_random();
        unsigned key = (unsigned)(random >> 32) % (random % 4 ? 300 : KEYS);
        switch (random >> 8 & 255) {
        case 0:
            room = (uint64_t)(4 << 10) << (random >> 20) % 12;
            hot_drop(&hot, hot.bytes > room ? hot.bytes - room : 0);
            break;
        case 1:
            hot_pass(&hot, (uint32_t)(random >> 24) % 500);
            break;
        case 2:
            fails = !fails;
            break;
        case 3:
            take(key);
            break;
        case 4:
        case 5:
            model[key].version++;
            break;
        case 6:
            model[key].codec++;
            break;
        case 7:
            if (random >> 20 & 1) hot_clear(&hot);
            break;
        default:
            if (hot.bytes <= room) get(key, room);
        }
        if (i % 1000 == 0) CHECK(hot_sane(&hot));
    }
    CHECK(hot.read > STEPS / 10);
    fails = false;
    pass_all();
    CHECK(hot.bytes == 0 && hot.marked == 0 && hot_sane(&hot));
}

int main(void) {
    hot_init(&hot, &may_fail);
    test_the_second_time();
    test_room();
    test_many();
    test_all_alike();
    test_less_room();
    test_model();
    hot_clear(&hot);
    return test_report("hot values");
}
