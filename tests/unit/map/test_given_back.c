/* Memory that is given back when what took it is gone: a bucket's array, a map's
 * directory, a workspace at rest. */
#include "../test.h"
#include "codec/codecs.h"
#include "map/map_inside.h"

#include <malloc.h>
#include <stdlib.h>

static size_t live; /* bytes */
static bool refuses;
static int left = -1; /* allocations before one fails; -1: none fails */

static void *test_alloc(size_t n) {
    if (left >= 0 && left-- == 0) return NULL;
    void *block = malloc(n);
    live += malloc_usable_size(block);
    return block;
}
static void *test_realloc(void *block, size_t n) {
    if (refuses) return NULL;
    live -= malloc_usable_size(block);
    block = realloc(block, n);
    live += malloc_usable_size(block);
    return block;
}
static void test_free(void *block) {
    live -= malloc_usable_size(block);
    free(block);
}
static const mem counting = {test_alloc, test_realloc, test_free, malloc_usable_size};

enum { PAGES = 200 };

/* Takes pages out until `left` are there, from anywhere; the others stay. */
static void take_out(bucket *b, uint32_t left) {
    static page p[PAGES];
    uint32_t n;
    for (int i = 0; i < PAGES; i++) CHECK(bucket_add(&counting, b, &p[i]));
    bool out[PAGES] = {false};
    for (bucket_pages(b, &n); n > left; bucket_pages(b, &n)) {
        uint32_t index = (uint32_t)(test_random() % n);
        out[bucket_pages(b, &n)[index] - p] = true;
        bucket_remove(&counting, b, index);
    }
    page **pages = bucket_pages(b, &n);
    CHECK(n == left);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(!out[pages[i] - p]);
        out[pages[i] - p] = true;
    }
}

static void test_bucket(void) {
    for (uint32_t left = 0; left < 20; left++) {
        bucket b = {{NULL}};
        take_out(&b, left);
        CHECK(live <= (left > BUCKET_INLINE ? 2 * (left + 1) * sizeof(page *) + 32 : 0));
        bucket_clear(&counting, &b);
        CHECK(live == 0);
    }
}

/* What can't be given back is kept. */
static void test_allocator_refuses(void) {
    bucket b = {{NULL}};
    static page p[8];
    for (int i = 0; i < 8; i++) CHECK(bucket_add(&counting, &b, &p[i]));
    refuses = true;
    for (int i = 0; i < 4; i++) bucket_remove(&counting, &b, 2);
    refuses = false;
    uint32_t n;
    bucket_pages(&b, &n);
    CHECK(n == 4);
    bucket_clear(&counting, &b);
    CHECK(live == 0);
}

/* Buckets that are not there any more take no room; what can't be given back is kept. */
static void test_directory(void) {
    static const uint64_t secret[2] = {1, 2};
    static page p[300];
    map_shared shared;
    CHECK(map_shared_init(&shared, &counting, 3));
    map *m = map_new(&shared, secret);
    CHECK(m);
    size_t fresh = live;
    for (int i = 1; i < 300; i++) {
        CHECK(map_add_bucket(m));
        CHECK(bucket_add(&counting, map_bucket(m, (uint32_t)i), &p[i]));
    }
    CHECK(live >= fresh + 299 * sizeof(bucket));
    while (m->buckets > 10) {
        refuses = m->buckets < 50 && m->buckets > 20;
        map_drop_bucket(m);
        if (!refuses) CHECK(live <= fresh + (2 * m->buckets + 3) * sizeof(bucket));
    }
    for (uint32_t i = 1; i < 10; i++) {
        uint32_t n;
        CHECK(*bucket_pages(map_bucket(m, i), &n) == &p[i] && n == 1);
        bucket_clear(&counting, map_bucket(m, i));
    }
    map_free(m);
    map_shared_free(&shared);
    CHECK(live == 0);
}

static void encode_one(codecs *all, codec_workspace *w) {
    static char text[60000];
    codec_value out;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * i % 11);
    CHECK(codecs_encode(all, w, text, sizeof text, &out) && out.len < sizeof text);
}

static void test_workspace(void) {
    codecs all;
    codec_workspace w;
    codecs_init(&all, &counting, 3);
    CHECK(workspace_init(&w, &counting));
    size_t fresh = live;
    encode_one(&all, &w);
    for (int i = 0; i < WORKSPACE_IDLE; i++) workspace_trim(&w);
    CHECK(live > fresh + 100000); /* zstd's, kept for the next one */
    encode_one(&all, &w);
    for (int i = 0; i < WORKSPACE_IDLE; i++) workspace_trim(&w);
    CHECK(live > fresh + 100000);
    for (int i = 0; i < 2 * WORKSPACE_IDLE; i++) workspace_trim(&w);
    CHECK(live == fresh);
    encode_one(&all, &w);
    workspace_free(&w);
    codecs_free(&all);
    CHECK(live == 0);
}

/* A workspace that could not be made is empty, whatever is done with it. */
static void test_no_workspace(void) {
    codec_workspace w;
    for (int n = 0; n < 2; n++) {
        left = n;
        CHECK(!workspace_init(&w, &counting));
        for (int i = 0; i < 2 * WORKSPACE_IDLE; i++) workspace_trim(&w);
        workspace_free(&w);
        CHECK(live == 0);
    }
}

int main(void) {
    test_bucket();
    test_allocator_refuses();
    test_directory();
    test_workspace();
    test_no_workspace();
    return test_report("given back");
}
