/* Sorting places in an array: against the order that is known, with equal ones among them. */
#include "base/sort.h"
#include "../test.h"

#define MOST 300

static bool before(const void *context, uint32_t a, uint32_t b) {
    const uint32_t *value = context;
    return value[a] != value[b] ? value[a] < value[b] : a < b;
}

int main(void) {
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
    return test_report("sort");
}
