/*
 * own_records.h: records that clients have given an expiry on a replica that may be written to
 * (replica-read-only no). The primary knows nothing of them, so it is this server that deletes them
 * when they expire, as Redis does with keys.
 */
#ifndef CKV_OWN_RECORDS_H
#define CKV_OWN_RECORDS_H

#include "ckv.h"

/* Once, at load. */
void own_records_start(RedisModuleCtx *ctx);

/* A record has been given an expiry by a command. */
void own_records_note(RedisModuleCtx *ctx, int db, const RedisModuleString *name);

/* Other data takes the place of all there is. */
void own_records_forget(void);

/* Whether that is kept in mind of a key. */
bool own_records_have(int db, const RedisModuleString *key);

/* Between commands, some times a second: looks at some of them. `expire` deletes the record of a
 * key if it has expired, and says whether the key is to be kept in mind. */
typedef bool own_records_expire(RedisModuleCtx *ctx, RedisModuleString *name);
void own_records_step(RedisModuleCtx *ctx, own_records_expire *expire);

#endif
