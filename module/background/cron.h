/* cron.h: the timer that does what happens between commands: slices of less than a
 * millisecond, in which each kind of work has its turn to begin. */
#ifndef CKV_CRON_H
#define CKV_CRON_H

#include "redismodule.h"

/* Once, at load. */
void cron_start(RedisModuleCtx *ctx);

#endif
