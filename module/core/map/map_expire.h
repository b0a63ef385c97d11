/* map_expire.h: taking out what has expired, without being asked for it. */
#ifndef CKV_MAP_EXPIRE_H
#define CKV_MAP_EXPIRE_H

#include "map/map.h"

/* Deletes up to `limit` records of a bucket that have expired by `now_ms`; returns how many. It
 * looks at two bytes a record, and only in pages where something expires. */
uint32_t map_expire(map *m, uint32_t bucket_index, int64_t now_ms, uint32_t limit, map_gone *told,
                    void *context);

#endif
