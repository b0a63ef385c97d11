/*
 * huffman.c: package-merge (Larmore and Hirschberg, "A fast algorithm for optimal
 * length-limited Huffman codes", 1990).
 *
 * Every symbol owns one coin for each code length 1 .. limit; the coin of length l is worth
 * 2^-l and costs the symbol's weight. Buying coins worth (symbols - 1) as cheaply as possible
 * gives the lengths: a symbol's code is as long as the number of its coins that were bought.
 *
 *      length = limit      coins of that length, by cost
 *                             \_ pairs ("packages") are worth one coin of length - 1
 *      length = limit - 1  coins and packages, merged by cost
 *        ...
 *      length = 1          the cheapest 2 * symbols - 2 of these are bought
 *
 * The lists themselves are not kept, only one bit for each place in them: coin or package. That
 * is enough to walk back, as the coins before a place are always the cheapest ones.
 *
 * The reserved code is a symbol of weight 0 without coins beyond its length: its coins come
 * first in their lists, so they are all bought.
 */
#include "phrase/huffman.h"

#include <string.h>

typedef struct lists {
    uint64_t *cost, *next; /* the list above, the one being merged */
    uint8_t *package;      /* bit: what stands at a place of a list is a package */
    uint32_t counts[HUFFMAN_LEN_MAX + 2];
    size_t row; /* bytes of `package` for one list */
} lists;

/* Merges the coins of one length with the packages of the list below it. */
static void merge(lists *l, const uint64_t *weight, uint32_t n, unsigned len, bool reserved) {
    uint8_t *package = l->package + len * l->row;
    uint32_t packages = l->counts[len + 1] / 2, coin = 0, pack = 0, out = 0;
    if (reserved) l->next[out++] = 0;
    while (coin < n || pack < packages) {
        uint64_t pair = pack < packages ? l->cost[2 * pack] + l->cost[2 * pack + 1] : 0;
        if (coin < n && (pack == packages || weight[coin] <= pair)) {
            l->next[out++] = weight[coin++];
        } else {
            package[out / 8] |= (uint8_t)(1u << out % 8);
            l->next[out++] = pair;
            pack++;
        }
    }
    l->counts[len] = out;
    uint64_t *swap = l->cost;
    l->cost = l->next;
    l->next = swap;
}

static uint32_t packages_before(const uint8_t *package, uint32_t places) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < places / 8; i++) sum += (uint32_t)__builtin_popcount(package[i]);
    if (places % 8)
        sum += (uint32_t)__builtin_popcount(package[places / 8] & ((1u << places % 8) - 1));
    return sum;
}

bool huffman_lengths(const mem *m, const uint64_t *weight, uint32_t n, unsigned limit,
                     unsigned reserved, uint8_t *lens) {
    size_t places = 2 * (size_t)n + 2;
    lists l = {.row = places / 8 + 1};
    uint64_t *costs = m->alloc(2 * places * sizeof *costs);
    l.package = m->alloc((limit + 1) * l.row);
    if (!costs || !l.package) {
        if (costs) m->free(costs);
        if (l.package) m->free(l.package);
        return false;
    }
    l.cost = costs;
    l.next = costs + places;
    memset(l.package, 0, (limit + 1) * l.row);
    for (unsigned len = limit; len >= 1; len--) merge(&l, weight, n, len, len <= reserved);

    memset(lens, 0, n);
    uint32_t bought = 2 * n; /* n symbols and the reserved one */
    for (unsigned len = 1; len <= limit && bought > 0; len++) {
        uint32_t packages = packages_before(l.package + len * l.row, bought);
        uint32_t coins = bought - packages - (len <= reserved);
        for (uint32_t i = 0; i < coins; i++) lens[i]++;
        bought = 2 * packages;
    }
    m->free(costs);
    m->free(l.package);
    return true;
}
