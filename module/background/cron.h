/* cron.h: the timer that does what happens between commands, each kind of work in a slice of its
 * own: less than a millisecond. */
#ifndef CKV_CRON_H
#define CKV_CRON_H

#include "redismodule.h"

/* Once, at load. */
void cron_start(RedisModuleCtx *ctx);

#endif
