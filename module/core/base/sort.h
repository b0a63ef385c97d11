/*
 * sort.h: sorting numbers, mostly places in some array, by whatever they stand for.
 *
 * No input makes it slow, and it allocates nothing: qsort() may call malloc().
 */
#ifndef CKV_SORT_H
#define CKV_SORT_H

#include <stdbool.h>
#include <stdint.h>

/* ---- by a function: heapsort ----------------------------------------------------------------- */

/* Whether a has to stand before b. */
typedef bool sort_before(const void *context, uint32_t a, uint32_t b);

static inline void sort_sift(uint32_t *heap, uint32_t n, uint32_t i, sort_before *before,
                             const void *context) {
    uint32_t moving = heap[i];
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(context, heap[child], heap[child + 1])) child++;
        if (!before(context, moving, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

/* It is not stable: where it matters which of two equal things comes first, `before` says so. In a
 * header, so that `before` is compiled into it. */
static inline void sort_by(uint32_t *list, uint32_t n, sort_before *before, const void *context) {
    for (uint32_t i = n / 2; i-- > 0;) sort_sift(list, n, i, before, context);
    while (n-- > 1) {
        uint32_t last = list[n];
        list[n] = list[0];
        list[0] = last;
        sort_sift(list, n, 0, before, context);
    }
}

/* ---- by a word: radix sort, from the lowest byte --------------------------------------------- */

#define SORT_BYTES 8 /* of a word */

typedef struct sort_word {
    uint64_t word;
    uint32_t number;
} sort_word;

static inline unsigned sort_byte(const sort_word *w, unsigned byte) {
    return w->word >> 8 * byte & 0xff;
}

/* To where they belong by one byte, of whose values there are so many each. */
static inline void sort_scatter(const sort_word *from, sort_word *to, uint32_t n, unsigned byte,
                                const uint32_t count[256]) {
    uint32_t at[256], sum = 0;
    for (unsigned value = 0; value < 256; sum += count[value++]) at[value] = sum;
    for (uint32_t i = 0; i < n; i++) to[at[sort_byte(&from[i], byte)]++] = from[i];
}

/* Those of equal words stay in their order. `spare` has as much room; returns which of both holds
 * the result. */
static inline sort_word *sort_words(sort_word *list, sort_word *spare, uint32_t n) {
    uint32_t count[SORT_BYTES][256] = {0};
    for (uint32_t i = 0; i < n; i++)
        for (unsigned byte = 0; byte < SORT_BYTES; byte++) count[byte][sort_byte(&list[i], byte)]++;
    for (unsigned byte = 0; byte < SORT_BYTES && n > 0; byte++) {
        if (count[byte][sort_byte(list, byte)] == n) continue; /* it is the same everywhere */
        sort_scatter(list, spare, n, byte, count[byte]);
        sort_word *sorted = spare;
        spare = list;
        list = sorted;
    }
    return list;
}

#endif
