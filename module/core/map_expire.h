/* map_expire.h: taking out what has expired, without being asked for it. */
#ifndef CKV_MAP_EXPIRE_H
#define CKV_MAP_EXPIRE_H

#include "map.h"

/* Told of each record that goes, before it does; the key's bytes are good during the call. */
typedef void map_expired(void *context, const uint8_t *key, size_t key_len);

/* Deletes up to `limit` records of a bucket that have expired by `now_ms`; returns how many. It
 * looks at two bytes a record, and only in pages where something expires. */
uint32_t map_expire(map *m, uint32_t bucket_index, int64_t now_ms, uint32_t limit,
                    map_expired *told, void *context);

#endif
