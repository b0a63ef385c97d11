/* A scan while the map grows and shrinks: what is there all the time is visited at least once. */
#include "../test.h"
#include "map/map_scan.h"

#include <malloc.h>
#include <string.h>

#define STAYING 4000 /* keys that are there during the whole scan */
#define PASSING 40000

static const uint64_t secret[2] = {5, 6};
static const mem plain = {malloc, realloc, free, malloc_usable_size};
static int visits[STAYING];
static long visited;

static size_t make_key(char *key, bool staying, int i) {
    if (i % 3 == 0) return (size_t)sprintf(key, "%c:%d", staying ? 's' : 'p', i);
    return (size_t)sprintf(key, "%c:%d:x", staying ? 's' : 'p', i);
}

static void put(map *m, bool staying, int i) {
    char key[32], value[200] = "";
    map_key k;
    map_pos pos;
    codec_value encoded;
    map_key_init(m, &k, key, make_key(key, staying, i));
    bool found = map_find(m, &k, &pos);
    CHECK(map_encode(m->shared, value, 40 + (size_t)i % 100, &encoded));
    CHECK(map_put(m, &k, found ? &pos : NULL, &encoded, EXPIRY_NONE, 1));
}

static void delete (map *m, int i) {
    char key[32];
    map_key k;
    map_pos pos;
    map_key_init(m, &k, key, make_key(key, false, i));
    if (map_find(m, &k, &pos)) map_delete(m, &k, &pos, 1);
}

static bool visit(void *context, const uint8_t *key, size_t len, const map_pos *pos) {
    (void)context, (void)pos;
    char text[32];
    CHECK(len < sizeof text);
    memcpy(text, key, len);
    text[len] = 0;
    if (text[0] == 's') visits[atoi(text + 2)]++;
    visited++;
    return true;
}

/* Between two steps, `change` keys come or go. */
static void scan_while(map *m, int change, bool growing) {
    static int at;
    uint64_t position = 0;
    memset(visits, 0, sizeof visits);
    while (position < MAP_SCAN_END) {
        uint64_t next = map_scan(m, position, visit, NULL);
        CHECK(next > position);
        position = next;
        uint32_t forwards = map_scan_reversed((uint32_t)position);
        CHECK(map_scan_reversed(forwards) == (uint32_t)position);
        CHECK(change > 0 || forwards < 2 * m->buckets);
        for (int i = 0; i < change; i++, at++) {
            if (growing)
                put(m, false, at % PASSING);
            else
                delete (m, at % PASSING);
        }
    }
    CHECK(position == MAP_SCAN_END);
    for (int i = 0; i < STAYING; i++) CHECK(visits[i] >= 1);
}

static void scans(map *m) {
    for (int i = 0; i < STAYING; i++) put(m, true, i);
    for (int round = 0; round < 30; round++) {
        scan_while(m, 50 + round, true);
        scan_while(m, 50 + round * 2, false);
    }
    for (int i = 0; i < PASSING; i++) delete (m, i);
    CHECK(map_sane(m));
    visited = 0;
    scan_while(m, 0, true);
    CHECK(visited == STAYING); /* nothing twice while nothing changes */
}

/* Steps of one scan, each in a map that has been cut or put together since. */
static void every_number_of_buckets(map *m) {
    for (int i = 0; i < 3000; i++) {
        put(m, false, i);
        if (i % 10 == 0) scan_while(m, 0, true);
    }
}

static bool pick(void *context, const uint8_t *key, size_t len, const map_pos *pos) {
    (void)pos;
    (*(int *)context)++;
    return visit(NULL, key, len, pos);
}

static void random_records(map *m) {
    int picked = 0, distinct = 0;
    memset(visits, 0, sizeof visits);
    for (int i = 0; i < 20 * STAYING; i++) map_visit_random(m, test_random(), pick, &picked);
    for (int i = 0; i < STAYING; i++) distinct += visits[i] > 0;
    CHECK(picked > 19 * STAYING);
    CHECK(distinct > STAYING * 99 / 100);
}

int main(void) {
    map_shared all;
    CHECK(map_shared_init(&all, &plain, 3));
    map *m = map_new(&all, secret);
    CHECK(m != NULL);
    map_visit_random(m, 77, visit, NULL);
    CHECK(visited == 0);
    CHECK(map_scan(m, 0, visit, NULL) == MAP_SCAN_END);
    scans(m);
    random_records(m);
    every_number_of_buckets(m);
    map_free(m);
    map_shared_free(&all);
    return test_report("map scan");
}
