/* cron.h: what happens between commands, in slices of at most a millisecond. */
#ifndef CKV_CRON_H
#define CKV_CRON_H

#include "keyspace/maps.h"

void cron_start(RedisModuleCtx *ctx);

/* Brings every page to the current codec, faster than it would happen anyway; the client is
 * answered when it is done. */
int cron_optimize(RedisModuleCtx *ctx);

/* Starts to bring every page to the current codec, as after a training. */
void cron_reencode(void);

/* Pages that are still to be brought to the current codec, about. */
uint64_t cron_pages_to_reencode(void);

#endif
