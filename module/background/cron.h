/* cron.h: the timer that does what happens between commands, each kind of work in a slice of its
 * own: a millisecond, 2.5 for expiry while much expires. */
#ifndef CKV_CRON_H
#define CKV_CRON_H

#include "redismodule.h"

/* Once, at load. */
void cron_start(RedisModuleCtx *ctx);

#endif
