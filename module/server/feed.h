/*
 * feed.h: whether anybody is fed with what is written: replicas, the backlog kept for them, an AOF.
 *
 * The server asks itself that, and drops at once what no one is to get. But the arguments that say
 * it (a relative TTL made absolute) are made before it is asked, a tenth of what a short CSET
 * takes.
 *
 * No event says that a replica has come. It is sent nothing before the server has forked to save
 * the data for it, though, and no more does an AOF that is switched on get anything before. So it
 * does to take a fork, of any kind, for a sign that there will be somebody, and to look again
 * between commands: nobody is fed when INFO says so and no child is at work. Whether it is a
 * replica INFO knows by then. A replica's partial resynchronization needs a backlog, which INFO
 * tells of too. Valkey 9 switches the AOF of a replica on again without a fork, behind a full sync
 * whose file it takes for the AOF's: while a server follows another there may be somebody.
 */
#ifndef CKV_FEED_H
#define CKV_FEED_H

#include "ckv.h"

/* A fork: there may be somebody from now on. */
void feed_expect(RedisModuleCtx *ctx);

/* False: what is replicated now goes nowhere. */
bool feed_needed(void);
/* False: there is no replica, and none that may ask for what it has missed. */
bool feed_replicas(void);

/* Looks again. Between commands, some times a second. */
void feed_check(RedisModuleCtx *ctx);

#endif
