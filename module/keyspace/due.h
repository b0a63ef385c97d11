/*
 * due.h: records that expire within seconds, as far as somebody has just written or read them: they
 * are deleted at the moment, before the commands that come with it are read.
 *
 * That is for WATCH: the server takes back an EXEC if a watched key has changed, and looks itself
 * whether one has expired; of records it only hears when they are deleted. Who watches a record has
 * usually just read or written it. There is room for some of them, the last ones; others are
 * deleted when they are met, or by active expiry.
 */
#ifndef CKV_DUE_H
#define CKV_DUE_H

#include "keyspace/removals.h"

/* Deletes the record of a key that has expired by now_ms, and notes that; ctx has its database
 * selected. */
typedef void due_expire(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_ms,
                        removals *gone);

/* Once, at load. */
void due_start(due_expire *expire);

/* A record that is there expires at at_ms. */
void due_note(int db, RedisModuleString *name, int64_t at_ms, int64_t now_ms);

/* Some times a second: the server's event loop is not listened to while nothing is due. */
void due_rest(void);

#endif
