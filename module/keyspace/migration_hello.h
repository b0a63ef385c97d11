/*
 * migration_hello.h: slots go atomically (Redis 8.4 and newer) to no node without this module.
 *
 * The maps of a slot go over as RESTORE. A node that does not know their type answers each with an
 * error, which nobody reads: the migration is completed, and the records are gone on both nodes. So
 * nodes say hello to all others over the cluster's bus, every 20 s, and once more to the one that
 * has the slots when they begin to import. Who has not said so for a minute gets nothing: the
 * migration is cancelled, the log says why, and the other node tries again by itself, once a
 * second.
 *
 *      importing node                         migrating node
 *      IMPORT_STARTED  ---- hello ----------> heard
 *                      ---- SYNC -----------> MIGRATE_STARTED
 *                      ---- RDBCHANNEL -----> the child that sends the maps is born: heard of it?
 *
 * The bus is a connection of its own, and may be some milliseconds behind: that hello alone would
 * not do. Modules of before say none.
 */
#ifndef CKV_MIGRATION_HELLO_H
#define CKV_MIGRATION_HELLO_H

#include "redismodule.h"

/* Says it to the node of that id; NULL: to all. */
void migration_hello_say(RedisModuleCtx *ctx, const char *node);

/* A migration, a task of that id, has begun to the node `target`. */
void migration_hello_expect(const char *target, const char *task);
/* It has failed. */
void migration_hello_forget(void);

/* A child has been born. Unless the other node has said hello by then the migration that has begun
 * is cancelled, if it would lose anything. */
void migration_hello_child(RedisModuleCtx *ctx);

/* At the start, where slots can go so. */
void migration_hello_start(RedisModuleCtx *ctx);

#endif
