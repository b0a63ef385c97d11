/* map_defrag.h: moving a map's blocks to better places in memory. */
#ifndef CKV_MAP_DEFRAG_H
#define CKV_MAP_DEFRAG_H

#include "map/map.h"

/* Moves a block: returns where it is now, or NULL if it stays. */
typedef void *map_mover(void *context, void *block);

/* Offers the pages and large records of one bucket to `move`; and of the directory the segment that
 * begins with it, if one does. */
void map_defrag_bucket(map *m, uint32_t index, map_mover *move, void *context);

#endif
