/* Every block of a map is moved: all records are still there. */
#include "../test.h"
#include "group.h"
#include "map/map_defrag.h"

#include <malloc.h>
#include <string.h>

#define RECORDS 80000 /* more than one segment of buckets */

static const uint64_t secret[2] = {5, 6};

static void *move(void *context, void *block) {
    ++*(uint64_t *)context;
    size_t n = malloc_usable_size(block);
    void *moved = malloc(n);
    memcpy(moved, block, n);
    free(block);
    return moved;
}

int main(void) {
    map_shared all;
    char key[32];
    static char value[2000];
    map_key k;
    map_pos pos;
    uint64_t moves = 0;
    CHECK(map_shared_init(&all, &mem_libc, 3));
    map_group group = {0};
    map *m = map_new(&all, secret);
    map_join(m, &group);
    for (int i = 0; i < RECORDS; i++) {
        codec_value encoded;
        for (size_t j = 0; i % 100 == 0 && j < sizeof value; j++) value[j] = (char)test_random();
        memset(value, 'a' + i % 26, 80);
        value[sizeof value - 1] = (char)('a' + i % 26);
        map_key_init(m, &k, key, (size_t)sprintf(key, "key:%d", i * 3));
        CHECK(map_encode(&all, value, i % 100 ? 80 : sizeof value, &encoded));
        CHECK(map_put(m, &k, NULL, &encoded, EXPIRY_NONE, 0));
    }
    CHECK(m->buckets > MAP_SEGMENT && m->totals.large > 0);
    for (uint32_t i = 0; i < m->buckets; i++) map_defrag_bucket(m, i, move, &moves);
    CHECK(group_follows(m));
    CHECK(moves > m->totals.pages + m->totals.large);
    for (int i = 0; i < RECORDS; i++) {
        size_t len;
        map_key_init(m, &k, key, (size_t)sprintf(key, "key:%d", i * 3));
        CHECK(map_find(m, &k, &pos));
        const uint8_t *got = map_value(m, &pos, &len);
        CHECK(got && len == (i % 100 ? 80 : sizeof value) && got[len - 1] == 'a' + i % 26);
    }
    CHECK(map_sane(m));
    map_free(m);
    map_shared_free(&all);
    return test_report("map defrag");
}
