/*
 * quiet.h: the server's own announcements that are not for our keys.
 *
 * A map is a key of the server, which announces each that is new to those who listen to events of
 * class n; and Redis 8.2 looks for a native key whenever it is told that a record has changed, and
 * announces a miss, class m. An event can't be kept back, so the class is switched off meanwhile.
 * That costs nothing where nobody listens to it.
 */
#ifndef CKV_QUIET_H
#define CKV_QUIET_H

#include "redismodule.h"

#include <stdint.h>

/* From here on a class of events, REDISMODULE_NOTIFY_*, is not announced; returns what to give to
 * quiet_end(). Not within one another. */
int quiet_begin(RedisModuleCtx *ctx, int class);
void quiet_end(RedisModuleCtx *ctx, int before);

/* RedisModule_SignalModifiedKey(), without a miss. */
void quiet_signal_modified(RedisModuleCtx *ctx, RedisModuleString *key);
/* How many the server has counted for all that, in keyspace_misses. */
uint64_t quiet_misses(void);

#endif
