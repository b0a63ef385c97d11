/*
 * active_expiry.h: active expiry. A pass over all buckets that looks at two bytes a record, in
 * slices between commands: 0.5% of the time at most while little is found, a quarter of it
 * while much is, or more by `active-expire-effort`; not begun more often than twice a second. Not
 * on a replica, where the primary decides, nor while CLIENT PAUSE holds writes back.
 */
#ifndef CKV_ACTIVE_EXPIRY_H
#define CKV_ACTIVE_EXPIRY_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/* Once, at load. */
void active_expiry_start(void);

/* DEBUG SET-ACTIVE-EXPIRE. */
void active_expiry_enable(bool enabled);

/* Deletes what has expired of a replica's own records (keyspace/own_records.h). */
void active_expiry_own_step(RedisModuleCtx *ctx);

/* Goes on until `deadline_us` (monotonic). True if much is found: come back soon. */
bool active_expiry_step(RedisModuleCtx *ctx, uint64_t deadline_us);

#endif
