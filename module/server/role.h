/*
 * role.h: what this server may decide by itself.
 *
 * Where a command was carried out first, what it meets had not expired: that it goes is a command
 * of its own, from the primary or the AOF. So a replica neither expires nor evicts.
 */
#ifndef CKV_ROLE_H
#define CKV_ROLE_H

#include "redismodule.h"

#include <stdbool.h>

/* RedisModule_GetContextFlags(), and SLAVE also in the first moment of a replica in a cluster. */
int role_flags(RedisModuleCtx *ctx);

/* Whether a file is loaded; not where clients go on meanwhile with the data of before. */
bool role_loads(RedisModuleCtx *ctx);
/* Whether one is loaded at all, also beside that data. */
bool role_loads_any(RedisModuleCtx *ctx);

/* Whether a command comes from the primary or from an AOF. */
bool role_repeats(RedisModuleCtx *ctx);

/* Whether records are another server's to delete: on a replica, by commands from elsewhere, while a
 * file is loaded. */
bool role_follows(RedisModuleCtx *ctx);

/* From when (ms since 1970) a time is seen that a record is given: now, or, where the primary's
 * clock says what has passed and ours is ahead of it, some ticks before. */
int64_t role_seen_from(RedisModuleCtx *ctx, int64_t at_ms, int64_t now_ms);

/* Once, at load. False: the server does not say when its role changes. */
bool role_start(RedisModuleCtx *ctx);

/* Calls `told` whenever this server has come to follow another one, or none: a module has one place
 * where it hears of that. At the start. */
typedef void role_changed(bool follows);
void role_listen(role_changed *told);

/* Whether this is a replica in a cluster. It is to hold in its maps what its primary does: slots
 * leave map by map. */
bool role_mirrors(void);

/* Whether a module has called the command, or the script that it is in: that one may have said that
 * nobody is to be told of whatever comes of it. (Not of a script that is called as a user, nor of
 * what is called as one within a script.) */
bool role_is_called(RedisModuleCtx *ctx);

/* Whether what has expired is deleted here: not where this server follows, nor while CLIENT PAUSE,
 * a failover or an import keeps the data as it is. */
bool role_may_expire(RedisModuleCtx *ctx);

/* Whether the server leaves keys of its own that have expired where they are, and only says that
 * there is none: on a replica that is not written to, and where nothing may expire besides. */
bool role_keeps_expired(RedisModuleCtx *ctx);

/* A replica that may be written to remembers each key that is given a time by anybody but its
 * primary's own client as one of its clients', and deletes it by its own clock. What this module
 * does with its primary's keys is done as if it might not, from here to role_write_own(true);
 * false: there is no need. */
bool role_write_primarys(void);
void role_write_own(bool again);

#endif
