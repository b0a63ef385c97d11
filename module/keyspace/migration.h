/*
 * migration.h: atomic slot migration, as Valkey 9 has it.
 *
 * The records of the slots come in as commands while the other node still serves them. Until the
 * server announces that the slots have changed hands they are nobody's: they neither count nor
 * expire here, and if it fails the server deletes their maps.
 */
#ifndef CKV_MIGRATION_H
#define CKV_MIGRATION_H

#include "redismodule.h"

/* The option that a module must set for a server to migrate slots so; 0 if the server can't. */
int migration_option(void);

/* Listens to the server, if it can. */
int migration_start(RedisModuleCtx *ctx);

#endif
