/*
 * quiet.h: the server's own announcements that are not for our keys.
 *
 * A map is a key of the server, which announces each that is new to those who listen to events of
 * class n. An event can't be kept back, so the class is switched off meanwhile. That costs nothing
 * where nobody listens to it.
 *
 * Redis 8.2 looks for a native key whenever it is told that a record has changed, counts a miss,
 * and announces it. It doesn't where a key that was opened for writing is closed, unless the module
 * has an option against that.
 */
#ifndef CKV_QUIET_H
#define CKV_QUIET_H

#include "redismodule.h"

/* From here on nobody is told of new keys; returns what to give to quiet_end(). Not within one
 * another. */
int quiet_begin(RedisModuleCtx *ctx);
void quiet_end(RedisModuleCtx *ctx, int before);

/* RedisModule_SignalModifiedKey(), without a miss. */
void quiet_signal_modified(RedisModuleCtx *ctx, RedisModuleString *key);

/* RedisModule_SetModuleOptions(), once. Keys that are closed are not signalled, whatever they say.
 */
void quiet_set_options(RedisModuleCtx *ctx, int options);

#endif
