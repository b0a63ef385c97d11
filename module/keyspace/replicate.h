/*
 * replicate.h: what replicas and the AOF are told of a change to records: always with absolute
 * times, without conditions, as a command that does just this.
 */
#ifndef CKV_REPLICATE_H
#define CKV_REPLICATE_H

#include "ckv.h"

/* A record was written; at_ms is EXPIRY_NEVER or when it expires. */
void replicate_set(RedisModuleCtx *ctx, RedisModuleString *key, RedisModuleString *value,
                   int64_t at_ms);
/* A record was written and keeps the expiry that it had. */
void replicate_set_keeping_expiry(RedisModuleCtx *ctx, RedisModuleString *key,
                                  RedisModuleString *value);
void replicate_delete(RedisModuleCtx *ctx, RedisModuleString *const *keys, size_t count);
void replicate_expiry(RedisModuleCtx *ctx, RedisModuleString *key, int64_t at_ms);
void replicate_persist(RedisModuleCtx *ctx, RedisModuleString *key);

#endif
