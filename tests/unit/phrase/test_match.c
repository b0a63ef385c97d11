/* What is found is a phrase that was added, of just that length: in tables so small that cells of
 * other phrases are come by all the time, and with filters that let everything through. */
#include "phrase/phrase_match.h"
#include "../test.h"

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

int main(void) {
    for (int i = 0; i < ROUNDS; i++) test_beginnings(4, 2 + i % 2);
    for (int i = 0; i < ROUNDS / 30; i++)
        for (unsigned len = 9; len <= PHRASE_LEN_MAX; len += 11) test_beginnings(len, 2 + i % 7);
    return test_report("match");
}
