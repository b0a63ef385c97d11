/* places.c: which map a key belongs to. See places.h. */
#include "keyspace/places.h"

#include "core/base/hash_slot.h"
#include "core/base/siphash.h"
#include "core/base/stem.h"
#include "server/databases.h"
#include "server/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 32

/* Which map a key belongs to must be the same everywhere, so this hash has no secret. Who chooses
 * keys that share a map gains nothing: within the map, the hash is keyed. */
static const uint64_t partition_secret[2] = {0x636b762d70617274ULL, 0x6974696f6e2d6b31ULL};

static uint32_t *tags; /* of the slots; standalone, found when first needed */
static uint32_t layout;

static void find_tags(void) {
    tags = RedisModule_Alloc(HASH_SLOTS * sizeof *tags);
    hash_slot_find_tags(tags);
}

void places_start(bool cluster) {
    if (cluster) find_tags();
    ckv.places = cluster ? HASH_SLOTS : (uint32_t)ckv.config.maps;
    layout = cluster ? PLACES_SLOTS : ckv.places;
}

uint32_t places_of_string(const RedisModuleString *key) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    return places_of_key(text, len);
}

uint32_t places_layout(void) {
    return layout;
}

bool places_are_slots(void) {
    return layout == PLACES_SLOTS;
}

int places_dbs(void) {
    return version_is_valkey(VALKEY_9_0) ? databases_count() : 1;
}

static uint32_t place_of_key(const uint8_t *key, size_t len, uint32_t in_layout) {
    if (in_layout == PLACES_SLOTS) return hash_slot_of_key(key, len);
    uint8_t suffix;
    size_t stem_len = stem_split(key, len, &suffix);
    return (uint32_t)(siphash13(key, stem_len, partition_secret) % in_layout);
}

uint32_t places_of_key(const void *key, size_t len) {
    return place_of_key(key, len, layout);
}

/* Bytes of a tag that are remembered. */
#define TAG_MOST 64

typedef struct comparing {
    uint32_t layout, place;
    bool any;
    uint64_t left;         /* to be compared */
    uint8_t tag[TAG_MOST]; /* in a cluster: keys that begin so have that place */
    size_t tag_len;        /* 0: none */
} comparing;

static bool begins_with_tag(const comparing *c, const uint8_t *key, size_t key_len) {
    return c->tag_len > 0 && key_len >= c->tag_len && !memcmp(key, c->tag, c->tag_len);
}

static void note_tag(comparing *c, const uint8_t *key, size_t key_len) {
    size_t end = c->layout == PLACES_SLOTS ? hash_slot_tag_end(key, key_len) : 0;
    c->tag_len = end <= TAG_MOST ? end : 0;
    memcpy(c->tag, key, c->tag_len);
}

static bool compare_place(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    comparing *c = context;
    (void)pos;
    if (begins_with_tag(c, key, key_len)) return --c->left > 0;
    uint32_t place = place_of_key(key, key_len, c->layout);
    bool same = !c->any || place == c->place;
    c->any = true;
    note_tag(c, key, key_len);
    c->place = same ? place : PLACES_NONE;
    return same && --c->left > 0;
}

uint32_t places_of_map(map *m, uint32_t of_layout, uint64_t records_a_bucket) {
    comparing c = {.layout = of_layout, .place = PLACES_NONE};
    for (uint32_t i = 0; i < m->buckets && !(c.any && c.place == PLACES_NONE); i++) {
        c.left = records_a_bucket;
        map_each(m, i, compare_place, &c);
    }
    return c.place;
}

static size_t write_name(char *text, uint32_t of_layout, uint32_t place) {
    if (of_layout != PLACES_SLOTS)
        return (size_t)snprintf(text, NAME_MAX_LEN, CKV_MAP_PREFIX "%u", place);
    if (!tags) find_tags();
    return (size_t)snprintf(text, NAME_MAX_LEN, CKV_MAP_PREFIX "{%u}", tags[place]);
}

RedisModuleString *places_name(uint32_t place) {
    char text[NAME_MAX_LEN];
    size_t len = write_name(text, layout, place);
    return RedisModule_CreateString(NULL, text, len);
}

/* "ckv:07" is not "ckv:7". */
uint32_t places_of_name_in(const RedisModuleString *name, uint32_t of_layout) {
    size_t len, prefix = strlen(CKV_MAP_PREFIX);
    const char *text = RedisModule_StringPtrLen(name, &len);
    char expected[NAME_MAX_LEN];
    if (len <= prefix || len >= NAME_MAX_LEN || memcmp(text, CKV_MAP_PREFIX, prefix) != 0)
        return PLACES_NONE;
    unsigned long place =
        of_layout == PLACES_SLOTS ? hash_slot_of_key(text, len) : strtoul(text + prefix, NULL, 10);
    if (of_layout != PLACES_SLOTS && place >= of_layout) return PLACES_NONE;
    size_t expected_len = write_name(expected, of_layout, (uint32_t)place);
    bool same = len == expected_len && !memcmp(text, expected, len);
    return same ? (uint32_t)place : PLACES_NONE;
}

uint32_t places_of_name(const RedisModuleString *name) {
    return places_of_name_in(name, layout);
}
