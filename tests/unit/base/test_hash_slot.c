/* Slots: the CRC, what counts as a hash tag, one tag for every slot. */
#include "../test.h"
#include "base/hash_slot.h"

#include <stdio.h>
#include <string.h>

static uint32_t slot(const char *key) {
    return hash_slot_of_key(key, strlen(key));
}

static void known_slots(void) {
    CHECK(slot("123456789") == 0x31c3); /* the check value that defines the CRC, below 16384 */
    CHECK(slot("foo") == 12182);
    CHECK(slot("") == 0);
}

static void hash_tags(void) {
    CHECK(slot("{foo}.bar") == slot("foo"));
    CHECK(slot("bar{foo}{zap}") == slot("foo"));
    CHECK(slot("{{foo}}") == slot("{foo"));
    CHECK(slot("{}{foo}") != slot("foo"));
    CHECK(slot("{foo") != slot("foo"));
    CHECK(slot("}{foo}") == slot("foo"));
}

static void tag_ends(void) {
    static const struct {
        const char *key;
        size_t end;
    } cases[] = {{"{foo}.bar", 5}, {"bar{foo}{zap}", 8}, {"{{foo}}", 6}, {"{}{foo}", 0},
                 {"{foo", 0},      {"foo", 0},           {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *key = cases[i].key;
        char other[32];
        size_t end = hash_slot_tag_end((const uint8_t *)key, strlen(key));
        CHECK(end == cases[i].end);
        sprintf(other, "%.*s}{else}", (int)end, key);
        CHECK(end == 0 || slot(other) == slot(key));
    }
}

static void tags(void) {
    static uint32_t tag[HASH_SLOTS];
    hash_slot_find_tags(tag);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ckv:{%u}", tag[i]);
        CHECK(slot(name) == i);
    }
    CHECK(tag[slot("0")] == 0);
}

int main(void) {
    known_slots();
    hash_tags();
    tag_ends();
    tags();
    return test_report("slot");
}
