/*
 * migration.h: atomic slot migration, as Valkey 9 and Redis 8.4 have it.
 *
 * The records of the slots come in while the other node still serves them: in Valkey as commands,
 * in Redis as maps and then the commands since. Until the server announces that the slots have
 * changed hands they are nobody's: they neither count nor expire here. What must not be here any
 * more, there in the end or here if it fails, the server deletes: Valkey key by key, Redis after a
 * while ("trimming") and, unless some client tracks keys, by handing whole dictionaries to another
 * thread without a word about each key. So their maps have to be forgotten before.
 *
 *               importing node                      migrating node
 *      Valkey   STARTED hides, COMPLETED and        -
 *               ABORTED show
 *      Redis    STARTED hides, COMPLETED shows,     COMPLETED hides, trimming forgets and shows
 *               trimming (it failed) forgets and
 *               shows
 *
 * Replicas hear of imports and of trimming as well. Of an import that a file tells of, a replica's
 * after its full sync, Valkey says nothing, and is asked; Redis says nothing if it has told of it
 * before.
 */
#ifndef CKV_MIGRATION_H
#define CKV_MIGRATION_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/* The option that a module must set for Valkey to migrate slots so; 0 if the server asks for none.
 */
int migration_option(void);

/* Listens to the server, if it can migrate slots so. */
int migration_start(RedisModuleCtx *ctx);

/* All keys of a database are about to go, or of all (-1), and with them those that were to be
 * trimmed, of which nothing more is said: only what is on its way here stays hidden. */
void migration_flushed(int db);

/* A file is about to be loaded, or has been. */
void migration_loading(bool of_aof);
void migration_loaded(RedisModuleCtx *ctx);

/* Whether a map is to come whole (Redis) to a place that has none yet: native strings of the slot,
 * which come as SET, must not become records before, or the map would find another in its place. */
bool migration_awaits_map(int db, uint32_t place);

#endif
