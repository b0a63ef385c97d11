/* map_group.c: what several maps hold together. See map.h. */
#include "map/map_inside.h"
#include "map/map_uncounted.h"

/* They are added up as an array. */
#define TOTALS 10
_Static_assert(sizeof(map_totals) == TOTALS * sizeof(uint64_t), "all are numbers of 64 bits");

/* Adds to a map's group how much `now` is more than `before`, less than nothing as well. */
static void add(const map *m, const map_size *now, const map_size *before) {
    map_group *g = m->group;
    m->shared->young.bytes += now->totals.young_bytes - before->totals.young_bytes;
    g->buckets += (uint64_t)now->buckets - before->buckets;
    const uint64_t *to = (const uint64_t *)&now->totals, *from = (const uint64_t *)&before->totals;
    uint64_t *sum = (uint64_t *)&g->totals;
    for (size_t i = 0; i < TOTALS; i++) sum[i] += to[i] - from[i];
}

void map_group_add(map_group *g, const map_group *more) {
    uint64_t *sum = (uint64_t *)&g->totals;
    const uint64_t *from = (const uint64_t *)&more->totals;
    for (size_t i = 0; i < TOTALS; i++) sum[i] += from[i];
    g->maps += more->maps;
    g->buckets += more->buckets;
}

void map_tell_group(const map *m, const map_size *before) {
    map_size now = map_size_now(m);
    if (m->group) add(m, &now, before);
}

void map_join(map *m, map_group *group) {
    const map_size nothing = {0};
    m->group = group;
    group->maps++;
    map_tell_group(m, &nothing);
    map_young_restart(m);
}

void map_leave(map *m) {
    if (!m->group) return;
    map_young_part(m);
    uncounted_count_out(m->shared);
    map_size now = map_size_now(m);
    const map_size nothing = {0};
    add(m, &nothing, &now);
    m->group->maps--;
    m->group = NULL;
}
