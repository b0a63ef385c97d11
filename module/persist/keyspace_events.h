/* keyspace_events.h: what the server does with all keys of a database, or of all: FLUSHALL, SWAPDB,
 * a file that is loaded or saved. */
#ifndef CKV_KEYSPACE_EVENTS_H
#define CKV_KEYSPACE_EVENTS_H

#include "redismodule.h"

/* Listens, from the load of the module on. */
void keyspace_events_listen(RedisModuleCtx *ctx);

#endif
