/*
 * pause.h: whether a pause of all writes (CLIENT PAUSE, FAILOVER) holds commands back.
 *
 * What it has held back runs when it is over, from Redis 7.2 on without the filter, before the
 * server goes to sleep. Whatever must come first is done by who is told here. A pause ends where
 * somebody looks at the time, by a command, or by what another node of the cluster says:
 *
 *      sleep | after it | commands, other nodes | timers, cron | what was held back | sleep ...
 *                ^                               ^      ^
 *                looks                           looks, looks
 *
 * A command that a thread of Valkey's has read runs before the sleep, with no timer behind it: who
 * ends a pause by CLIENT UNPAUSE looks himself (transparent/serve_client.h). Where nobody looks, as
 * behind SHUTDOWN ABORT then, it is told with what was held back (transparent/leave.c).
 */
#ifndef CKV_PAUSE_H
#define CKV_PAUSE_H

#include "ckv.h"

bool pause_holds(void);

/* Who is told, between commands, when nothing is held back any more: once for whatever has asked
 * meanwhile. Nobody is before there is a listener. */
typedef void pause_end(void);
void pause_listen(pause_end *told);
void pause_at_end(void);

/* Some times a second, and between commands. */
void pause_look(RedisModuleCtx *ctx);

#endif
