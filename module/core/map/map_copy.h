/* map_copy.h: a second map with the same records. */
#ifndef CKV_MAP_COPY_H
#define CKV_MAP_COPY_H

#include "map/map.h"

/* A copy, page by page, which is in no group. NULL: out of memory. */
map *map_copy(const map *m);

#endif
