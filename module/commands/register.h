/* register.h: makes the commands of command_table.c known to the server. */
#ifndef CKV_REGISTER_H
#define CKV_REGISTER_H

#include "redismodule.h"

int register_commands(RedisModuleCtx *ctx);

#endif
