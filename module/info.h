/* info.h: the figures of INFO ckv and CKV STATS, from one list. */
#ifndef CKV_INFO_H
#define CKV_INFO_H

#include "redismodule.h"

/* The section of INFO. */
void info_section(RedisModuleInfoCtx *ctx, int for_crash_report);

/* Replies the same figures as a map. */
int info_reply(RedisModuleCtx *ctx);

#endif
