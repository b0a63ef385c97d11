/* Memory that runs out at every allocation in turn: nothing leaks, nothing is half changed. */
#include "map.h"
#include "test.h"

#include <malloc.h>
#include <string.h>

#define KEYS 400

static const uint64_t secret[2] = {3, 4};
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

static int values[KEYS]; /* what each key holds; -1: nothing */

static bool put(map *m, int i, int value) {
    char key[32], bytes[1500];
    map_key k;
    map_pos pos;
    codec_value encoded;
    size_t len = value % 17 == 0 ? 1400 : 20 + (size_t)(value % 90);
    memset(bytes, 'a' + value % 26, len);
    memcpy(bytes, &value, sizeof value);
    map_key_init(m, &k, key, (size_t)sprintf(key, i % 3 ? "key:%d" : "k%dx", i));
    bool found = map_find(m, &k, &pos);
    return codec_encode_new(m->codecs, bytes, len, &encoded) &&
           map_put(m, &k, found ? &pos : NULL, &encoded, value % 2 ? EXPIRY_NONE : 77, 1000);
}

static void check(map *m, int i) {
    char key[32];
    map_key k;
    map_pos pos;
    size_t len;
    int value;
    map_key_init(m, &k, key, (size_t)sprintf(key, i % 3 ? "key:%d" : "k%dx", i));
    CHECK(map_find(m, &k, &pos) == (values[i] >= 0));
    if (values[i] < 0) return;
    const uint8_t *got = map_value(m, &pos, &len);
    CHECK(got && len >= sizeof value);
    memcpy(&value, got, sizeof value);
    CHECK(value == values[i]);
}

int main(void) {
    codecs all;
    CHECK(codecs_init(&all, &failing, 3));
    map *m = map_new(&all, secret);
    CHECK(m != NULL);
    memset(values, -1, sizeof values);
    for (int step = 0; step < 6000; step++) {
        int i = (int)(test_random() % KEYS);
        left = (long)(test_random() % 12);
        bool done = put(m, i, step);
        left = -1;
        if (done) values[i] = step;
        check(m, i);
        if (step % 50 == 0) CHECK(map_sane(m));
    }
    for (int i = 0; i < KEYS; i++) check(m, i);
    CHECK(map_sane(m));
    map_free(m);
    left = 0;
    CHECK(map_new(&all, secret) == NULL);
    left = 1;
    CHECK(map_new(&all, secret) == NULL);
    left = -1;
    codecs_free(&all);
    return test_report("map memory");
}
