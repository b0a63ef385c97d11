/* bucket.c: the pages of one place in a map's directory. See bucket.h. */
#include "bucket.h"

#include <string.h>

#define COUNT_MASK ((uintptr_t)15)
#define COUNTED    15 /* the array begins with its count */

static page **array_of(bucket b) { return (page **)(b & ~COUNT_MASK); }

page **bucket_pages(bucket *b, uint32_t *count) {
    uintptr_t n = *b & COUNT_MASK;
    if (n == 0) {
        *count = *b != 0;
        return (page **)b;
    }
    page **array = array_of(*b);
    if (n < COUNTED) {
        *count = (uint32_t)n;
        return array;
    }
    *count = (uint32_t)(uintptr_t)array[0];
    return array + 1;
}

static void set_array(bucket *b, page **array, uint32_t n) {
    if (n >= COUNTED) array[0] = (page *)(uintptr_t)n;
    *b = (uintptr_t)array | (n < COUNTED ? n : COUNTED);
}

bool bucket_add(const mem *m, bucket *b, page *p) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    if (n == 0) {
        *b = (uintptr_t)p;
        return true;
    }
    bool counted = n + 1 >= COUNTED;
    page **array = m->alloc((n + 1 + counted) * sizeof *array);
    if (!array) return false;
    memcpy(array + counted, pages, n * sizeof *array);
    array[n + counted] = p;
    bucket_clear(m, b);
    set_array(b, array, n + 1);
    return true;
}

void bucket_remove(const mem *m, bucket *b, uint32_t index) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    if (n <= 2) {
        page *left = n == 2 ? pages[1 - index] : NULL;
        bucket_clear(m, b);
        *b = (uintptr_t)left;
        return;
    }
    pages[index] = pages[n - 1];
    page **array = array_of(*b);
    if (n == COUNTED) memmove(array, array + 1, (n - 1) * sizeof *array);
    set_array(b, array, n - 1);
}

void bucket_clear(const mem *m, bucket *b) {
    if (*b & COUNT_MASK) m->free(array_of(*b));
    *b = 0;
}

size_t bucket_bytes(const mem *m, const bucket *b) {
    return *b & COUNT_MASK ? m->usable(array_of(*b)) : 0;
}
