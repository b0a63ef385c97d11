/* map_defrag.c: moving a map's blocks. See map_defrag.h. */
#include "map/map_defrag.h"

#include "map/map_inside.h"

typedef struct moving {
    map *m;
    map_mover *move;
    void *context;
} moving;

static bool move_large(void *context, large **l) {
    const moving *with = context;
    const mem *mem = with->m->shared->mem;
    size_t before = mem->usable(*l);
    large *moved = with->move(with->context, *l);
    if (!moved) return true;
    /* Some allocators have blocks of several sizes for the same request. */
    size_t grown = mem->usable(moved) - before;
    with->m->totals.large_bytes += grown;
    if (moved->young) map_young_moved(with->m, *l, moved, grown);
    *l = moved;
    return true;
}

static void move_segment(const moving *with, uint32_t number) {
    map *m = with->m;
    bucket **at = number == 0 ? &m->first : &m->segments[number - 1];
    bucket *moved = with->move(with->context, *at);
    if (moved) *at = moved;
    if (number > 0 || !m->segments) return;
    bucket **segments = with->move(with->context, m->segments);
    if (segments) m->segments = segments;
}

void map_defrag_bucket(map *m, uint32_t index, map_mover *move, void *context) {
    moving with = {m, move, context};
    if (index % MAP_SEGMENT == 0) move_segment(&with, index / MAP_SEGMENT);
    map_size before = map_size_now(m);
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    for (uint32_t i = 0; i < n; i++) {
        page *moved = move(context, pages[i]);
        if (moved) pages[i] = moved;
    }
    map_each_large(m, index, move_large, &with);
    map_tell_group(m, &before);
}
