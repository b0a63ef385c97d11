/* Sorting places in an array: against the order that is known, with equal ones among them. */
#include "../test.h"
#include "base/sort.h"

#define MOST 300

static bool before(const void *context, uint32_t a, uint32_t b) {
    const uint32_t *value = context;
    return value[a] != value[b] ? value[a] < value[b] : a < b;
}

static void by_a_function(void) {
    uint32_t value[MOST] = {0}, order[MOST] = {0};
    for (uint32_t n = 0; n < MOST; n++) {
        for (uint32_t kinds = 1; kinds < 1000; kinds *= 5) {
            bool seen[MOST] = {false};
            for (uint32_t i = 0; i < n; i++) {
                value[i] = (uint32_t)(test_random() % kinds);
                order[i] = i;
            }
            sort_by(order, n, before, value);
            for (uint32_t i = 0; i < n; i++) {
                CHECK(order[i] < n && !seen[order[i]]);
                seen[order[i]] = true;
                CHECK(i == 0 || before(value, order[i - 1], order[i]));
            }
        }
    }
}

/* Words that differ in one byte, wherever it is, and in all. */
static uint64_t some_word(unsigned byte, uint32_t kinds) {
    uint64_t word = test_random() % kinds;
    return byte < SORT_BYTES ? word << 8 * byte : word * 0x9e3779b97f4a7c15u;
}

static void by_a_word(void) {
    sort_word list[2 * MOST] = {{0}};
    for (uint32_t n = 0; n < MOST; n += 1 + n / 20) {
        for (unsigned byte = 0; byte <= SORT_BYTES; byte++) {
            uint64_t sum = 0, sorted_sum = 0;
            for (uint32_t i = 0; i < n; i++) {
                list[i] = (sort_word){some_word(byte, 1 + (uint32_t)test_random() % 255), i};
                sum += list[i].word * (i + 1);
            }
            const sort_word *sorted = sort_words(list, list + n, n);
            CHECK(sorted == list || sorted == list + n);
            for (uint32_t i = 0; i < n; i++) {
                sorted_sum += sorted[i].word * (sorted[i].number + 1);
                if (i == 0) continue;
                const sort_word *a = &sorted[i - 1], *b = &sorted[i];
                CHECK(a->word < b->word || (a->word == b->word && a->number < b->number));
            }
            CHECK(sorted_sum == sum);
        }
    }
}

int main(void) {
    by_a_function();
    by_a_word();
    return test_report("sort");
}
