/* group.h: a group of one map has the same sums as the map. */
#ifndef CKV_TEST_GROUP_H
#define CKV_TEST_GROUP_H

#include "map/map.h"

#include <string.h>

static inline bool group_follows(const map *m) {
    const map_group *g = m->group;
    return g->maps == 1 && g->buckets == m->buckets &&
           !memcmp(&g->totals, &m->totals, sizeof g->totals);
}

#endif
