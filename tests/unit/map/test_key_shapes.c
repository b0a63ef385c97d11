/* Shapes of keys: no record is ever denied, also by a table that comes from a file, and most keys
 * of other shapes are. */
#include "../test.h"
#include "map/map_save.h"

#include <malloc.h>
#include <string.h>

#define KEYS 20000

static const uint64_t secret[2] = {7, 8};
static const mem plain = {malloc, realloc, free, malloc_usable_size};

static bool may_hold(const key_shapes *s, const char *key) {
    return key_shapes_may_have(s, key, strlen(key));
}

static void add(key_shapes *s, const char *key) {
    key_shapes_add(s, key, strlen(key));
}

/* Any bytes, but mostly such as keys are made of; few of them, so that shapes come again. */
static size_t random_key(char *key) {
    static const char bytes[] = "ab7:3-\x80\xffZ_";
    size_t len = test_random() % 9;
    for (size_t i = 0; i < len; i++)
        key[i] =
            test_random() % 50 ? bytes[test_random() % (sizeof bytes - 1)] : (char)test_random();
    return len;
}

/* What a token and a mark are is fixed: files have been written by it. */
static void test_shapes(void) {
    static const struct {
        const char *known, *same, *other;
    } cases[] = {
        {"user:123:name", "user:9:name", "user:123:mail"},
        {"user:123:name", "user:a9b:name", "user:abc:name"},
        {"list", "list", "list:"},
        {"1", "abc0", "abc"},
        {"", "", "a"},
        {"a:\x80\xff", "a:\x80\xff", "a:\x80\xfe"},
        {"a:\x80\x31", "a:7", "a::7"},
        {"0a-1b-2c", "ff0-1-2", "0a-1b:2c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        key_shapes s = {.kept = false};
        key_shapes_keep(&s, true);
        CHECK(!may_hold(&s, cases[i].known) && !may_hold(&s, cases[i].same));
        add(&s, cases[i].known);
        CHECK(may_hold(&s, cases[i].known) && may_hold(&s, cases[i].same));
        CHECK(!may_hold(&s, cases[i].other));
        CHECK(s.set == 1);
    }
}

#define BIT 30812 /* of "user:#:name" */

/* The bit of a shape, in files for ever. */
static void test_hash(void) {
    const uint8_t *bytes;
    key_shapes s = {.kept = false};
    key_shapes_keep(&s, true);
    add(&s, "user:123:name");
    CHECK(key_shapes_save(&s, &bytes) == KEY_SHAPES_BYTES);
    CHECK(bytes[BIT / 8] == 1 << BIT % 8);
}

static void test_when_kept(void) {
    key_shapes s = {.kept = false};
    add(&s, "a");
    CHECK(may_hold(&s, "a") && may_hold(&s, "b"));
    key_shapes_clear(&s);
    CHECK(may_hold(&s, "b"));
    key_shapes_keep(&s, false); /* there are records that nobody has told of */
    add(&s, "a");
    CHECK(may_hold(&s, "a") && may_hold(&s, "b"));
    key_shapes_keep(&s, true); /* nothing new */
    CHECK(may_hold(&s, "b"));
    key_shapes_clear(&s);
    CHECK(!may_hold(&s, "a") && !may_hold(&s, "b"));
    add(&s, "a");
    CHECK(may_hold(&s, "a") && !may_hold(&s, "b"));
    key_shapes_stop(&s);
    CHECK(may_hold(&s, "b"));
    key_shapes_keep(&s, true);
    CHECK(!may_hold(&s, "a"));
}

static void test_too_many(void) {
    key_shapes s = {.kept = false};
    key_shapes_keep(&s, true);
    char key[32];
    int n = 0;
    for (; s.whole; n++) {
        sprintf(key, "%x", n);
        for (char *c = key; *c; c++)
            if (*c <= '9') *c += 'p' - '0';
        add(&s, key);
        CHECK(may_hold(&s, key));
        CHECK(s.set <= (uint32_t)n + 1);
    }
    CHECK(n > (int)KEY_SHAPES_BITS / 2 && n < (int)KEY_SHAPES_BITS);
    CHECK(may_hold(&s, "never seen"));
    const uint8_t *bytes;
    CHECK(key_shapes_save(&s, &bytes) == 0);
    key_shapes_clear(&s);
    CHECK(!may_hold(&s, "never seen") && s.set == 0);
}

/* ---- of maps --------------------------------------------------------------------------------- */

static char keys[KEYS][16];
static size_t lens[KEYS];

static void store_all(map *m) {
    for (int i = 0; i < KEYS; i++) {
        lens[i] = random_key(keys[i]);
        CHECK(map_store(m, keys[i], lens[i], "value", 5, EXPIRY_NEVER, 1));
    }
}

/* Most of those that no key has had: any one of them may have its bit set by others. */
static bool tells_apart(const key_shapes *s) {
    int known = 0;
    char key[] = "no:such:shape:a";
    for (char *last = &key[sizeof key - 2]; *last <= 'z'; ++*last) known += may_hold(s, key);
    return known < 13;
}

static void check_all(const key_shapes *s) {
    for (int i = 0; i < KEYS; i++) CHECK(key_shapes_may_have(s, keys[i], lens[i]));
    CHECK(s->whole && tells_apart(s));
}

static void test_maps_and_files(void) {
    map_shared shared;
    CHECK(map_shared_init(&shared, &plain, 3));
    key_shapes_keep(&shared.shapes, true);
    map *m = map_new(&shared, secret);
    store_all(m);
    check_all(&shared.shapes);
    const uint8_t *bytes;
    size_t n = key_shapes_save(&shared.shapes, &bytes);
    CHECK(n == KEY_SHAPES_BYTES);

    key_shapes loaded = {.kept = false};
    CHECK(key_shapes_load(&loaded, bytes, n)); /* nobody asks */
    CHECK(may_hold(&loaded, "no:such:shape"));
    key_shapes_keep(&loaded, true);
    add(&loaded, "other-than:those");
    CHECK(!key_shapes_load(&loaded, bytes, n - 1));
    CHECK(key_shapes_load(&loaded, bytes, n));
    check_all(&loaded);
    CHECK(may_hold(&loaded, "other-than:those"));
    bool is_new = !may_hold(&shared.shapes, "other-than:those");
    CHECK(loaded.set == shared.shapes.set + is_new);
    CHECK(key_shapes_load(&loaded, bytes, 0)); /* a file that does not tell */
    CHECK(may_hold(&loaded, "no:such:shape"));

    map_free(m);
    map_shared_clear(&shared);
    CHECK(!key_shapes_may_have(&shared.shapes, keys[0], lens[0]));
    map_shared_free(&shared);
}

/* Those of a map that has come without them: of single keys, of such that share a stem, and of
 * records outside of pages. */
static void test_of_a_map(void) {
    static const uint8_t value[8000];
    map_shared shared;
    CHECK(map_shared_init(&shared, &plain, 3));
    key_shapes_keep(&shared.shapes, true);
    map *m = map_new(&shared, secret);
    store_all(m);
    for (int i = 0; i < 300; i++) {
        char key[600];
        size_t len = (size_t)sprintf(key, "stem%c:%d", 'a' + i % 7, 1000 + i);
        CHECK(map_store(m, key, len, "value", 5, EXPIRY_NEVER, 1));
        len = (size_t)sprintf(key, "large%c:%d:%0*d", 'a' + i % 7, i, i % 2 ? 500 : 1, i);
        CHECK(map_store(m, key, len, value, i % 3 ? sizeof value : 5, EXPIRY_NEVER, 1));
    }
    uint8_t bits[KEY_SHAPES_BYTES];
    memcpy(bits, shared.shapes.bits, sizeof bits);
    key_shapes_clear(&shared.shapes);
    map_add_shapes(m);
    CHECK(!memcmp(bits, shared.shapes.bits, sizeof bits));
    map_free(m);
    map_shared_free(&shared);
}

int main(void) {
    test_shapes();
    test_hash();
    test_when_kept();
    test_too_many();
    test_maps_and_files();
    test_of_a_map();
    return test_report("key_shapes");
}
