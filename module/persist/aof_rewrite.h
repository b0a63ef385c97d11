/* aof_rewrite.h: what a rewrite of the AOF says of a map: its records, each as a command; of an
 * inert one, a RESTORE. */
#ifndef CKV_AOF_REWRITE_H
#define CKV_AOF_REWRITE_H

#include "redismodule.h"

/* The callback of ckv's data type. */
void aof_rewrite_map(RedisModuleIO *io, RedisModuleString *key, void *value);

#endif
