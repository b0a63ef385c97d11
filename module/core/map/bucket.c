/* bucket.c: the pages of one place in a map's directory. See bucket.h. */
#include "map/bucket.h"

#include <string.h>

static page **array_of(const bucket *b) {
    uintptr_t first = (uintptr_t)b->pages[0];
    return first & 1 ? (page **)(first & ~(uintptr_t)1) : NULL;
}

static void set_array(bucket *b, page **array, uint32_t count) {
    *b = (bucket){{(page *)((uintptr_t)array | 1), (page *)(uintptr_t)count, NULL}};
}

bool bucket_add(const mem *m, bucket *b, page *p) {
    uint32_t n;
    page **pages = bucket_pages(b, &n), **array = array_of(b);
    if (n < BUCKET_INLINE && !array) {
        pages[n] = p;
        return true;
    }
    page **grown =
        array ? m->realloc(array, (n + 1) * sizeof *grown) : m->alloc((n + 1) * sizeof *grown);
    if (!grown) return false;
    if (!array) memcpy(grown, pages, n * sizeof *grown);
    grown[n] = p;
    set_array(b, grown, n + 1);
    return true;
}

/* Gives back half of an array that is too large by that, as after records have been encoded; if the
 * allocator lets it. */
static page **shrunk(const mem *m, page **array, uint32_t count) {
    size_t wanted = count * sizeof *array;
    page **smaller = m->usable(array) < 2 * wanted ? NULL : m->realloc(array, wanted);
    return smaller ? smaller : array;
}

void bucket_remove(const mem *m, bucket *b, uint32_t index) {
    uint32_t n;
    page **pages = bucket_pages(b, &n), **array = array_of(b);
    pages[index] = pages[n - 1];
    pages[n - 1] = NULL;
    if (!array) return;
    if (n - 1 > BUCKET_INLINE) {
        set_array(b, shrunk(m, array, n - 1), n - 1);
        return;
    }
    *b = (bucket){{NULL}};
    memcpy(b->pages, array, (n - 1) * sizeof *array);
    m->free(array);
}

void bucket_clear(const mem *m, bucket *b) {
    page **array = array_of(b);
    if (array) m->free(array);
    *b = (bucket){{NULL}};
}

size_t bucket_bytes(const mem *m, const bucket *b) {
    page **array = array_of(b);
    return array ? m->usable(array) : 0;
}
