/* What is found is a phrase that was added, of just that length: in tables so small that cells of
 * other phrases are come by all the time, and with filters that let everything through. And who
 * chooses the phrases can't make a look-up long. */
#include "../test.h"
#include "phrase/phrase_match.h"

#define CELLS       16
#define FILTER_BITS 3
#define ROUNDS      3000000

static uint64_t cells[CELLS];
static uint8_t filter[1 << FILTER_BITS], text[PHRASE_LEN_MAX + PHRASE_TEXT_PAD];
static phrase_matcher matcher = {.cells = cells,
                                 .filter = filter,
                                 .text = text,
                                 .cell_count = CELLS,
                                 .filter_shift = 64 - FILTER_BITS};

static void empty(void) {
    matcher.secret[0] = test_random() | 1;
    matcher.secret[1] = test_random();
    memset(cells, 0, sizeof cells);
    memset(filter, 0xff, sizeof filter);
}

static void fill_text(void) {
    for (size_t i = 0; i < sizeof text; i += sizeof(uint64_t)) {
        uint64_t word = test_random();
        memcpy(text + i, &word, sizeof word);
    }
}

/* Of a phrase of so many bytes, the first ones, with others behind: no phrase. A fingerprint is
 * equal once in 2,048 times, the text always. */
static void test_beginnings(unsigned len, unsigned beginning) {
    uint8_t record[PHRASE_LEN_MAX + PHRASE_TEXT_PAD];
    phrase_found found[PHRASE_LEN_MAX];
    uint32_t payload;
    empty();
    fill_text();
    phrase_match_add(&matcher, 0, len, 77);
    memcpy(record, text, sizeof record);
    record[beginning] ^= 1;
    CHECK(phrase_match(&matcher, record, PHRASE_LEN_MAX, &payload) == 1);
    CHECK(phrase_match_all(&matcher, record, PHRASE_LEN_MAX, found) == 1);
    CHECK(phrase_match(&matcher, text, PHRASE_LEN_MAX, &payload) == len && payload == 77);
    CHECK(phrase_match_all(&matcher, text, PHRASE_LEN_MAX, found) == 2);
    CHECK(found[1].len == len && found[1].payload == 77);
}

/* ---- phrases that somebody has chosen -------------------------------------------------------- */

#define FLOOD      4096 /* phrases */
#define FLOOD_BITS 13   /* of the filter */

static phrase_matcher crowd = {.text = NULL, .cell_count = 3 * FLOOD};

static uint64_t hash_under(const uint64_t secret[2], const uint8_t *phrase, unsigned len) {
    phrase_matcher t = {.secret = {secret[0], secret[1]}};
    uint64_t hash = 0;
    unsigned at = 0;
    for (; len - at > 8; at += 8) hash = match_hash(&t, hash, phrase_load64(phrase + at), 8);
    return match_hash(&t, hash, phrase_load64(phrase + at) & match_mask(len - at), len - at);
}

/* Adds the phrases, `len` bytes each, under a secret; returns how many cells a look-up goes through
 * in the mean. */
static double cells_a_look_up(const uint8_t *phrases, unsigned len, const uint64_t secret[2]) {
    phrase_matcher *t = &crowd;
    uint64_t through = 0;
    t->text = phrases;
    memcpy(t->secret, secret, sizeof t->secret);
    memset(t->cells, 0, t->cell_count * sizeof *t->cells);
    for (uint32_t i = 0; i < FLOOD; i++) phrase_match_add(t, i * len, len, i);
    for (uint32_t i = 0; i < t->cell_count; i++) {
        if (t->cells[i] == 0 || (t->cells[i] >> 46 & 127) != len) continue;
        uint32_t home = match_home(t, hash_under(secret, match_text(t, t->cells[i]), len));
        through += (i + t->cell_count - home) % t->cell_count + 1;
    }
    return (double)through / FLOOD;
}

/* Writes phrases of 8 bytes whose homes are near each other under the secret. */
static void choose_by_secret(uint8_t *phrases, const uint64_t secret[2]) {
    for (uint32_t i = 0; i < FLOOD; i++) {
        uint64_t word = test_random();
        do memcpy(phrases + i * 8, &(uint64_t){++word}, 8);
        while (hash_under(secret, phrases + i * 8, 8) >> 58 != 5);
    }
}

/* Phrases of 16 bytes whose words differ in their highest bits alone: if these were the only ones
 * to change in the first word's hash, 64 of the second words would make up for them. */
static void choose_by_highest_bits(uint8_t *phrases) {
    uint64_t first = test_random(), second = test_random();
    for (uint64_t i = 0; i < FLOOD; i++) {
        uint64_t words[2] = {first + (i / 64 << 58), second + (i % 64 << 58)};
        memcpy(phrases + i * 16, words, sizeof words);
    }
}

/* Phrases that fall together under the secret that is known do not under another one. */
static void test_flood(void) {
    static const uint64_t known[2] = {0x9e3779b97f4a7c15u, 0x243f6a8885a308d3u};
    uint8_t *phrases = calloc(1, FLOOD * 16 + PHRASE_TEXT_PAD);
    crowd.cells = malloc(crowd.cell_count * sizeof *crowd.cells);
    crowd.filter = calloc(1, 1 << FLOOD_BITS);
    crowd.filter_shift = 64 - FLOOD_BITS;
    choose_by_secret(phrases, known);
    CHECK(cells_a_look_up(phrases, 8, known) > FLOOD / 4);
    for (int i = 0; i < 20; i++) {
        uint64_t secret[2] = {test_random() | 1, test_random()};
        choose_by_secret(phrases, known);
        CHECK(cells_a_look_up(phrases, 8, secret) < 4);
        choose_by_highest_bits(phrases);
        CHECK(cells_a_look_up(phrases, 16, secret) < 8);
    }
    free(crowd.cells);
    free(crowd.filter);
    free(phrases);
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) test_beginnings(4, 2 + i % 2);
    for (int i = 0; i < ROUNDS / 30; i++)
        for (unsigned len = 9; len <= PHRASE_LEN_MAX; len += 11) test_beginnings(len, 2 + i % 7);
    test_flood();
    return test_report("match");
}
