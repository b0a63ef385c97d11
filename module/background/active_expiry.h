/*
 * expire.h: active expiry. A pass over all buckets that looks at two bytes a record, in slices
 * between commands: 1% of the time while little is found, up to a quarter of it while much is.
 * Not on a replica, where the primary decides, nor while CLIENT PAUSE holds writes back.
 */
#ifndef CKV_EXPIRE_H
#define CKV_EXPIRE_H

#include "keyspace/maps.h"

/* Once, at load. */
void expire_start(void);

/* Goes on until `deadline_us` (monotonic). True if much is found: come back soon. */
bool expire_step(RedisModuleCtx *ctx, uint64_t deadline_us);

#endif
