/* type.h: ckv's data type, as the server sees a map. */
#ifndef CKV_TYPE_H
#define CKV_TYPE_H

#include "redismodule.h"

/* Registers the type: REDISMODULE_OK or _ERR. */
int type_register(RedisModuleCtx *ctx);

#endif
