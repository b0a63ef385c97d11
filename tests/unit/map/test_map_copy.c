/* A copy of a map: the same records, nothing shared, also when memory runs out on the way. */
#include "../test.h"
#include "map/map_copy.h"

#include <malloc.h>
#include <string.h>

#define KEYS 5000

static const uint64_t secret[2] = {7, 8};
static long left = -1; /* allocations before one fails; -1: none fails */

static bool fails(void) {
    return left >= 0 && left-- == 0;
}
static void *test_alloc(size_t n) {
    return fails() ? NULL : malloc(n);
}
static void *test_realloc(void *block, size_t n) {
    return fails() ? NULL : realloc(block, n);
}
static const mem failing = {test_alloc, test_realloc, free, malloc_usable_size};

static void put(map *m, int i, int version) {
    char key[32], value[3000];
    map_key k;
    map_pos pos;
    codec_value encoded;
    memset(value, version, sizeof value);
    memcpy(value, &i, sizeof i);
    map_key_init(m, &k, key, (size_t)sprintf(key, "key:%d", i));
    bool found = map_find(m, &k, &pos);
    CHECK(map_encode(m->shared, value, i % 50 ? 8 + (size_t)i % 90 : 3000, &encoded));
    CHECK(map_put(m, &k, found ? &pos : NULL, &encoded, i % 2 ? EXPIRY_NONE : 999, 1000));
}

static void check(map *m, int i, int version) {
    char key[32];
    map_key k;
    map_pos pos;
    size_t len;
    map_key_init(m, &k, key, (size_t)sprintf(key, "key:%d", i));
    CHECK(map_find(m, &k, &pos));
    const uint8_t *value = map_value(m, &pos, &len);
    CHECK(value && !memcmp(value, &i, sizeof i) && value[len - 1] == (uint8_t)version);
    CHECK((map_expiry_ms(&pos) == EXPIRY_NEVER) == (i % 2 == 1));
}

int main(void) {
    map_shared all;
    CHECK(map_shared_init(&all, &failing, 3));
    map *m = map_new(&all, secret);
    for (int i = 0; i < KEYS; i++) put(m, i, 1);
    map *copy = map_copy(m);
    CHECK(copy != NULL && map_sane(copy));
    for (int i = 0; i < KEYS; i++) put(m, i, 2);
    for (int i = 0; i < KEYS; i++) {
        check(m, i, 2);
        check(copy, i, 1);
    }
    for (int i = 0; i < KEYS; i++) put(copy, i, 3);
    for (int i = 0; i < KEYS; i++) check(m, i, 2);
    CHECK(map_sane(copy) && map_sane(m));
    map_free(copy);
    for (long n = 0; n < 400; n++) {
        left = n;
        copy = map_copy(m);
        CHECK(left == -1 || copy);
        left = -1;
        if (copy) map_free(copy);
    }
    CHECK(map_sane(m));
    map_free(m);
    map_shared_free(&all);
    return test_report("map copy");
}
