/* type.h: ckv's data type, as the server sees a map. */
#ifndef CKV_TYPE_H
#define CKV_TYPE_H

#include "redismodule.h"

/* Registers the type and listens to what happens to keys and databases. */
int type_register(RedisModuleCtx *ctx);

#endif
