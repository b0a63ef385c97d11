/*
 * acl.h: what the server's own check of key patterns can't see.
 *
 * The server checks the keys that a command names. These functions are for commands that reach
 * records without naming them, and for options that read where the command only writes. Those
 * that are given a command's context, acl_may_read() and its like, reply NOPERM and make an entry
 * in ACL LOG when they return false.
 */
#ifndef CKV_ACL_H
#define CKV_ACL_H

#include "redismodule.h"

#include <stdbool.h>

/* The user's name, NULL if nobody stands behind the call but the server or a module. The caller
 * frees it. */
RedisModuleString *acl_user_name(RedisModuleCtx *ctx);
/* Whether there is one, be it that this module trusts him. */
bool acl_any_user(RedisModuleCtx *ctx);

/* While this module calls commands for itself, or on behalf of a user whom it has asked about: no
 * user stands behind them. Returns whether it was so. */
bool acl_trust(bool trusted);

/* Whether rules, words with a space between, have a word. */
bool acl_has_word(const char *text, size_t len, const char *word);

/* One part of "rules (selector) (selector)", which are all of a user's. */
typedef struct acl_part {
    const char *text, *rest; /* of which the first begins with all */
    size_t len, rest_len;
} acl_part;

/* The next one; false: there is none. */
bool acl_next_part(acl_part *p);

/* At the module's start. */
void acl_start(void);
/* Whether rules may be for some databases only, as in Valkey 9.1, which has a question of its own
 * for them. */
bool acl_knows_dbs(void);
/* Whether a user may run a command, with its keys, in a database. */
bool acl_may_run(RedisModuleUser *user, RedisModuleString **argv, int argc, int db);
/* A user of these rules, or of one part of them; all_keys: for whatever keys. The caller frees it.
 */
RedisModuleUser *acl_make_user(RedisModuleCtx *ctx, const char *rules, size_t len, bool all_keys);

/* Refuses as the server does one of its own commands: in scripts, and in those of Redis 7.0, it has
 * other words. */
void acl_reply_refusal(RedisModuleCtx *ctx, const char *text, const char *in_old_script);
/* The same of who may not access a key. */
void acl_reply_key_denied(RedisModuleCtx *ctx);

/* Whether the user may read every key there is: ~* or %R~*. */
bool acl_may_read_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* The same of writing: ~* or %W~*. */
bool acl_may_write_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* Whether the user may read this key. */
bool acl_may_read(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, RedisModuleString *key);

/* The same of writing. */
bool acl_may_write(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, RedisModuleString *key);

#endif
