/*
 * replicate.h: what replicas and the AOF are told of a change to records: always with absolute
 * times, without conditions, as a command that does just this.
 *
 * Of keys under a prefix replicas are told in the server's own words (SET, DEL, PEXPIREAT): a
 * replica without the module, or a tool that follows, sees ordinary strings. The AOF: aof_form.h.
 */
#ifndef CKV_REPLICATE_H
#define CKV_REPLICATE_H

#include "ckv.h"

/* A record was written; at_ms as record_put() has it. */
void replicate_set(RedisModuleCtx *ctx, RedisModuleString *key, RedisModuleString *value,
                   int64_t at_ms);
void replicate_delete(RedisModuleCtx *ctx, RedisModuleString *const *keys, size_t count);
/* The same of a DEL, which may be about keys that match no prefix. */
void replicate_native_delete(RedisModuleCtx *ctx, RedisModuleString *const *keys, size_t count);
/* Records are gone by themselves; lazy: to be freed in the background, where that is known. */
void replicate_removal(RedisModuleCtx *ctx, RedisModuleString *const *keys, size_t count,
                       bool lazy);
void replicate_expiry(RedisModuleCtx *ctx, RedisModuleString *key, int64_t at_ms);
void replicate_persist(RedisModuleCtx *ctx, RedisModuleString *key);
/* Any other of our commands ("CAPPEND") with its arguments, step by step a key and what belongs to
 * it. */
void replicate_command(RedisModuleCtx *ctx, const char *command, RedisModuleString *const *args,
                       size_t count, size_t step);

/* Each thing that is told counts as one change, after some of which a file is saved (`save`). So
 * many more have been told with it. */
void replicate_count(RedisModuleCtx *ctx, long long changes);
/* The command that it calls. */
#define REPLICATE_COUNTED CKV_ASKING_PREFIX "count"
int replicate_counted(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* A record is moved out because a command of the server's own comes next. Of keys under a prefix
 * only an AOF needs to know, and not every one: does nothing where it need not. */
void replicate_move_out(RedisModuleCtx *ctx, RedisModuleString *key);

/* A string has moved between commands. Of keys under a prefix an AOF need not know that one has
 * moved in, and replicas move theirs themselves; but in a cluster slots leave map by map, so that
 * both must hold in their maps what the primary does. */
void replicate_moved_out(RedisModuleCtx *ctx, RedisModuleString *key);
void replicate_moved_in(RedisModuleCtx *ctx, RedisModuleString *key);
/* A string is left to the server, where replicas make a record of it as it is written, or did: in a
 * cluster they are told. */
void replicate_left(RedisModuleCtx *ctx, RedisModuleString *key);

#endif
