/* What places a record: the hash, stems and slots. Files, replicas and other servers agree on it,
 * so these numbers are the same for ever. */
#include "../test.h"
#include "base/hash_slot.h"
#include "base/siphash.h"
#include "base/stem.h"

#include <string.h>

/* The secret of the hash that chooses a map, which is none. */
static const uint64_t partition_secret[2] = {0x636b762d70617274ULL, 0x6974696f6e2d6b31ULL};

/* The algorithm's own vectors: the bytes 0, 1, 2... under the secret 0, 1, ... 15. */
static void hashes(void) {
    static const struct {
        size_t n;
        uint64_t hash;
    } vectors[] = {
        {0, 0xabac0158050fc4dcULL},  {1, 0xc9f49bf37d57ca93ULL},  {7, 0xd3927d989bb11140ULL},
        {8, 0x369095118d299a8eULL},  {9, 0x25a48eb36c063de4ULL},  {15, 0xd320d86d2a519956ULL},
        {16, 0xcc4fdd1a7d908b66ULL}, {63, 0x9d199062b7bbb3a8ULL},
    };
    const uint64_t secret[2] = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        CHECK(siphash13(bytes, vectors[i].n, secret) == vectors[i].hash);
}

static void stem(const char *key, size_t stem_len, uint8_t suffix) {
    uint8_t found, joined[64];
    size_t len = strlen(key);
    CHECK(stem_split((const uint8_t *)key, len, &found) == stem_len);
    CHECK(found == suffix);
    memcpy(joined, key, stem_len);
    CHECK(stem_join(joined, stem_len, suffix) == len && !memcmp(joined, key, len));
}

static void stems(void) {
    stem("", 0, STEM_NO_SUFFIX);
    stem("k", 1, STEM_NO_SUFFIX);
    stem("7", 1, STEM_NO_SUFFIX);
    stem("99", 2, STEM_NO_SUFFIX);
    stem("100", 1, 0);
    stem("000", 1, 0);
    stem("user:7", 6, STEM_NO_SUFFIX);
    stem("user:42", 7, STEM_NO_SUFFIX);
    stem("user:123", 6, 23);
    stem("user:199", 6, 99);
    stem("media:1155315", 11, 15);
    stem("abc12", 5, STEM_NO_SUFFIX);
    stem("abc123", 4, 23);
    stem("123abc", 6, STEM_NO_SUFFIX);
    stem("1/23", 4, STEM_NO_SUFFIX);
    stem("1:23", 4, STEM_NO_SUFFIX);
    stem("12\xb2\xb3\xb4", 5, STEM_NO_SUFFIX); /* digits only below 0x80 */
}

/* The map of 1024 that a key's record lies in, "ckv:<place>". */
static void place(const char *key, uint64_t hash, uint32_t expected) {
    uint8_t suffix;
    size_t len = stem_split((const uint8_t *)key, strlen(key), &suffix);
    CHECK(siphash13(key, len, partition_secret) == hash);
    CHECK(hash % 1024 == expected);
}

static void places(void) {
    place("", 0x19c0e55078a4ceafULL, 687);
    place("k", 0x767789005894a327ULL, 807);
    place("7", 0x88681fb0efd02933ULL, 307);
    place("99", 0x26e6927c3e0dda7bULL, 635);
    place("100", 0x05f672c84dc5c199ULL, 409);
    place("user:7", 0x45c401553d0be105ULL, 261);
    place("user:42", 0xd40e440290d2847dULL, 125);
    place("user:123", 0x9f62006b3ca261fdULL, 509);
    place("user:199", 0x9f62006b3ca261fdULL, 509);
    place("user:1155315", 0x633702f736f493daULL, 986);
    place("media:1155315", 0x2baa3598407ee70bULL, 779);
    place("abc12", 0x3127acd9a0c864f1ULL, 241);
    place("abc123", 0x8eef020940a86343ULL, 835);
    place("{tag}:1000", 0xb18b99727e0cfb15ULL, 789);
    place("session:8f14e45f", 0x03953c7139251fd7ULL, 983);
    place("sixteen bytes..", 0x153034af9945c166ULL, 358);
    place("sixteen bytes...", 0xa463f1e844fd6984ULL, 388);
    place("00000000", 0x4c114705bdd74a97ULL, 663);
}

static void slot(const char *key, uint32_t expected) {
    CHECK(hash_slot_of_key(key, strlen(key)) == expected);
}

static void slots(void) {
    slot("", 0);
    slot("k", 7629);
    slot("100", 339);
    slot("foo", 12182);
    slot("user:7", 2780);
    slot("user:1155315", 624);
    slot("media:1155315", 11336);
    slot("{tag}:1000", 8338);
    slot("{tag}:2000", 8338);
    slot("tag", 8338);
    slot("{}{foo}", 2263);
    slot("{foo", 13308);
    slot("a{b}{c}", 3300);
    slot("ckv:{0}", 13907);
    slot("ckv:{42}", 8000);
    slot("session:8f14e45f", 6258);
}

/* The smallest number that hashes to a slot: a cluster's maps are named by it, "ckv:{<tag>}". */
static void tags(void) {
    static uint32_t tag[HASH_SLOTS];
    hash_slot_find_tags(tag);
    CHECK(tag[0] == 3560);
    CHECK(tag[1] == 22179);
    CHECK(tag[2] == 48756);
    CHECK(tag[255] == 47901);
    CHECK(tag[1000] == 18679);
    CHECK(tag[5798] == 1090);
    CHECK(tag[8191] == 42163);
    CHECK(tag[12182] == 43681);
    CHECK(tag[16382] == 15179);
    CHECK(tag[16383] == 39296);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) sum += (uint64_t)tag[i] * (i + 1);
    CHECK(sum == 2561414092140ULL);
}

int main(void) {
    hashes();
    stems();
    places();
    slots();
    tags();
    return test_report("placement");
}
