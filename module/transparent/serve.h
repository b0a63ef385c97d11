/*
 * serve.h: strings under the prefixes of `ckv.prefixes` live in ckv, unseen.
 *
 * A step of the command filter (server/filter.h), there only while a prefix is set. Of a command
 * that names a key that matches it does one of two things:
 *
 *      served    GET is renamed, argv[0] only, to one of ours, which decides key by key when it
 *                runs: a record, a value of the server's own (keyspace/native.h), nothing
 *      others    run as they are; a record among their keys moves out before (keyspace/move.h)
 *
 * The filter sees a command before it is looked up, for clients, scripts, other modules and what
 * comes from a primary; in MULTI when it is queued (keyspace/queued.h). It does not see what is
 * loaded from an AOF (keyspace/aof_form.h).
 */
#ifndef CKV_SERVE_H
#define CKV_SERVE_H

#include "redismodule.h"

/* Once, at the end of the start. */
void serve_start(RedisModuleCtx *ctx);

/* A module has come or gone, and with it commands. */
void serve_modules_changed(void);

#endif
