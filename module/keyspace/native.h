/*
 * native.h: what the server itself holds under a key that matches a prefix: strings that were there
 * before, values of other types.
 *
 * A key has one value: a native one or a record. So only where there is no record the server is
 * asked, and only in databases that hold more than maps.
 */
#ifndef CKV_NATIVE_H
#define CKV_NATIVE_H

#include "ckv.h"

/* REDISMODULE_KEYTYPE_… of a key of the selected database, ckv's own included. No event, no use. */
int native_type(RedisModuleCtx *ctx, RedisModuleString *key);

/* Of a key that is there: whether who looks for it would find that it has expired, and delete it.
 * Nothing happens to it. Redis 7.0 can't be asked: false. */
bool native_has_expired(RedisModuleCtx *ctx, const RedisModuleString *key);

/* Whether the server has a value of its own for a key of the selected database. No event, no use.
 */
bool native_exists(RedisModuleCtx *ctx, RedisModuleString *key);

/* Keys of the selected database that are not ckv's. In a cluster servers that migrate slots
 * atomically do not count those that are on their way to them, though commands of whoever sends
 * them meet them; Redis takes 75 us then to tell. */
uint64_t native_count(RedisModuleCtx *ctx);

/* Whether there may be any. */
bool native_any(RedisModuleCtx *ctx);

/* Whether it is a string of this value; nothing is none. False: it is no string. */
bool native_string_is(RedisModuleCtx *ctx, RedisModuleString *name, const RedisModuleString *value,
                      bool *is);

/* Longer values that are changed in part are left to the server: ckv would encode all of them anew
 * for each change. */
#define NATIVE_CHANGED_IN_PART 4096
/* Whether a key of the selected database is a string of that kind. No event, no use. */
bool native_is_long_string(RedisModuleCtx *ctx, RedisModuleString *key);

/* Calls the server's own command with these arguments, as part of this one: events and WATCH are
 * its business, and so are replicas and the AOF, unless the caller tells them itself. The caller
 * frees the reply; NULL: it could not be called. */
typedef enum native_replicates { NATIVE_REPLICATES, NATIVE_KEEPS_SILENT } native_replicates;
RedisModuleCallReply *native_call(RedisModuleCtx *ctx, native_replicates how, const char *command,
                                  RedisModuleString *const *args, size_t count);

/* Whether the running command was sent as one of the server's own, which transparent/ has renamed.
 */
bool native_sent(RedisModuleCtx *ctx);

/* The server's own command that the running one stands for: "get" for "cget" and "ckv.get". */
const char *native_name(RedisModuleCtx *ctx);

/* Lets the server's own command do what the running one was to do, and replies as it does. A string
 * that it has written moves into ckv, where it belongs. */
int native_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* The same for a value that is better off with the server: a record moves out first, and the string
 * stays there until a minute or two have passed without such a command. */
int native_leave(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* The same of one key of several, told to replicas by the caller: the number that it replies. */
long long native_count_of(RedisModuleCtx *ctx, RedisModuleString *key);

/* Moves a string that the server has just written into ckv, if its key is served. */
void native_take_in(RedisModuleCtx *ctx, RedisModuleString *key);
/* Behind a command on several keys: an AOF, and in a cluster replicas, are told that this one was
 * left to the server, if it was; the command by itself would make a record of it there. */
void native_tell_left(RedisModuleCtx *ctx, RedisModuleString *key);

/* Replies what a call replied, and frees it. */
int native_reply(RedisModuleCtx *ctx, RedisModuleCallReply *reply);

#endif
