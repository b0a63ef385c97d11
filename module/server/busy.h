/* busy.h: whether clients, or a primary, keep this server busy. */
#ifndef CKV_BUSY_H
#define CKV_BUSY_H

#include "redismodule.h"

#include <stdbool.h>

/* Whether more than a few commands have come lately. Often, by whoever has work that can wait. */
bool busy_clients(RedisModuleCtx *ctx);

#endif
