/*
 * sort.h: heapsort of numbers, mostly of places in some array, by whatever they stand for.
 *
 * No input makes it slow, and it allocates nothing: qsort() may call malloc(). It is not stable:
 * where it matters which of two equal things comes first, `before` says so.
 */
#ifndef CKV_SORT_H
#define CKV_SORT_H

#include <stdbool.h>
#include <stdint.h>

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

/* In a header, so that `before` is compiled into it. */
static inline void sort_by(uint32_t *list, uint32_t n, sort_before *before, const void *context) {
    for (uint32_t i = n / 2; i-- > 0;) sort_sift(list, n, i, before, context);
    while (n-- > 1) {
        uint32_t last = list[n];
        list[n] = list[0];
        list[0] = last;
        sort_sift(list, n, 0, before, context);
    }
}

#endif
