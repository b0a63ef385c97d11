/* Slots: the CRC, what counts as a hash tag, one tag for every slot. */
#include "base/hash_slot.h"
#include "../test.h"

#include <stdio.h>
#include <string.h>

static uint32_t slot(const char *key) {
    return hash_slot_of_key((const uint8_t *)key, strlen(key));
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
    tags();
    return test_report("slot");
}
