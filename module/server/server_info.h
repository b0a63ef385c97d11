/* server_info.h: what the server tells in INFO, which takes as long as some ten commands. */
#ifndef CKV_SERVER_INFO_H
#define CKV_SERVER_INFO_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/* 0: it does not tell. */
uint64_t server_info_number(RedisModuleCtx *ctx, const char *section, const char *field);

bool server_info_is(RedisModuleCtx *ctx, const char *section, const char *field, const char *value);

#endif
