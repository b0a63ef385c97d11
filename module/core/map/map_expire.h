/* map_expire.h: taking out what has expired, without being asked for it. */
#ifndef CKV_MAP_EXPIRE_H
#define CKV_MAP_EXPIRE_H

#include "map/map.h"

#define MAP_EXPIRE_BYTES (4u << 20) /* of large records, in one call */

/* Deletes up to `limit` records of a bucket that have expired by `now_ms`, fewer if large ones come
 * to MAP_EXPIRE_BYTES; returns how many. It looks at two bytes a record, and only in pages where
 * something expires. */
uint32_t map_expire(map *m, uint32_t bucket_index, int64_t now_ms, uint32_t limit, map_gone *told,
                    void *context);

/* How many records have expired by then; they stay. */
uint64_t map_expired(map *m, int64_t now_ms);

#endif
