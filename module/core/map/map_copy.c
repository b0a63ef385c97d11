/* map_copy.c: a second map with the same records. See map_copy.h. */
#include "map/map_copy.h"

#include "map/map_inside.h"
#include "map/map_uncounted.h"

#include <string.h>

typedef struct copying {
    map *to;
    bool done;
} copying;

static bool copy_pages(map_shared *shared, bucket *from, bucket *to) {
    const mem *mem = shared->mem;
    uint32_t n;
    page **pages = bucket_pages(from, &n);
    for (uint32_t i = 0; i < n; i++) {
        page *p = mem->alloc(pages[i]->cap);
        if (!p) return false;
        memcpy(p, pages[i], pages[i]->cap);
        if (!bucket_add(mem, to, p)) {
            mem->free(p);
            return false;
        }
        codecs_note_page(&shared->codecs, p->codec);
    }
    return true;
}

/* Gives the copied page a large record of its own, or none if there is no memory: what it points
 * to is not the copy's to free. */
static bool copy_large(void *context, large **at) {
    copying *c = context;
    const mem *mem = c->to->shared->mem;
    const large *l = *at;
    *at = c->done ? mem->alloc(large_bytes(l)) : NULL;
    if (*at) {
        memcpy(*at, l, large_bytes(l));
        map_count_large(c->to, *at);
    } else {
        c->done = false;
    }
    return true;
}

static bool copy_bucket(const map *from, uint32_t index, map *to) {
    copying c = {to, true};
    if (index > 0 && !map_add_bucket(to)) return false;
    c.done = copy_pages(to->shared, map_bucket(from, index), map_bucket(to, index));
    map_each_large(to, index, copy_large, &c);
    return c.done;
}

map *map_copy(const map *m) {
    map *copy = map_new(m->shared, m->secret);
    if (!copy) return NULL;
    for (uint32_t i = 0; i < m->buckets; i++) {
        if (copy_bucket(m, i, copy)) continue;
        map_free(copy);
        return NULL;
    }
    uncounted_count_out(m->shared);
    /* The allocator may have given blocks of other sizes. */
    map_totals counted = copy->totals;
    copy->totals = m->totals;
    copy->totals.large_bytes = counted.large_bytes;
    copy->totals.young_bytes = counted.young_bytes;
    return copy;
}
