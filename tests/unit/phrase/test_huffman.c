/* Code lengths are complete, limited and as good as Huffman's own. */
#include "../test.h"
#include "phrase/huffman.h"

#define N_MAX 3000

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The cost of an unlimited code: the sum of all inner nodes' weights. */
static uint64_t huffman_cost(const uint64_t *weight, uint32_t n) {
    static uint64_t inner[N_MAX];
    uint32_t leaf = 0, from = 0, to = 0;
    uint64_t cost = 0;
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint64_t sum = 0;
        for (int k = 0; k < 2; k++)
            sum += leaf < n && (from == to || weight[leaf] <= inner[from]) ? weight[leaf++]
                                                                           : inner[from++];
        inner[to++] = sum;
        cost += sum;
    }
    return cost;
}

static void check(uint64_t *weight, uint32_t n, unsigned limit, unsigned reserved) {
    static uint8_t lens[N_MAX];
    uint64_t space = (uint64_t)1 << (limit - reserved);
    qsort(weight, n, sizeof *weight, by_value);
    CHECK(huffman_lengths(&mem_libc, weight, n, limit, reserved, lens));
    for (uint32_t i = 0; i < n; i++) {
        CHECK(lens[i] >= 1 && lens[i] <= limit);
        CHECK(i == 0 || lens[i] <= lens[i - 1]);
        space += (uint64_t)1 << (limit - lens[i]);
    }
    CHECK(space == (uint64_t)1 << limit);
}

/* With the reserved code's space counted in, no code of the same weights can cost less than the
 * unlimited one, and with a high limit and a small reserve it costs hardly more. */
static void check_cost(uint64_t *weight, uint32_t n) {
    static uint8_t lens[N_MAX];
    uint64_t cost = 0, best = huffman_cost(weight, n);
    CHECK(huffman_lengths(&mem_libc, weight, n, HUFFMAN_LEN_MAX, 7, lens));
    for (uint32_t i = 0; i < n; i++) cost += weight[i] * lens[i];
    CHECK(cost >= best);
    CHECK((double)cost <= (double)best * 1.01);
}

static void *no_memory(size_t bytes) {
    (void)bytes;
    return NULL;
}

int main(void) {
    static uint64_t weight[N_MAX];
    static uint8_t lens[N_MAX];
    for (int round = 0; round < 300; round++) {
        uint32_t n = 256 + (uint32_t)(test_random() % (N_MAX - 256));
        unsigned shape = (unsigned)(test_random() % 3);
        for (uint32_t i = 0; i < n; i++)
            weight[i] = shape == 0   ? 1 + test_random() % 1000
                        : shape == 1 ? 1 + (test_random() >> (test_random() % 60 + 4))
                                     : 1000000 / (i + 1) + 1;
        check(weight, n, 13 + (unsigned)(test_random() % 12), 7);
        if (shape != 1) check_cost(weight, n);
    }
    mem none = mem_libc;
    none.alloc = no_memory;
    CHECK(!huffman_lengths(&none, weight, 256, 20, 7, lens));
    return test_report("huffman");
}
