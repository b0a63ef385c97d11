/* lookup.h: from a user's key to its map and record. Which map that is: places.h. */
#ifndef CKV_LOOKUP_H
#define CKV_LOOKUP_H

#include "keyspace/record.h"

typedef enum lookup_answer {
    LOOKUP_DONE,
    LOOKUP_WRONG_TYPE, /* the map's Redis key holds something else */
    LOOKUP_TRY_AGAIN,  /* the map is on its way to or from another node of the cluster */
    LOOKUP_NATIVE,     /* the key is the server's own: native.h */
} lookup_answer;

#define LOOKUP_MUST_USE __attribute__((warn_unused_result))

/* Finds the record of a command's first argument, as of now_ms. False: there is a reply already, an
 * error, or that of the server's own command if the key is its own; or the command will run again.
 */
bool lookup_key(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int64_t now_ms,
                record *r) LOOKUP_MUST_USE;
/* The same of any key, without replying. */
lookup_answer lookup_quietly(RedisModuleCtx *ctx, RedisModuleString *key, int64_t now_ms,
                             record *r) LOOKUP_MUST_USE;

/* The same in two steps, for whoever has something to do while memory arrives: first begin, then
 * finish. Other keys may be begun, finished and written between the two. */
void lookup_begin(RedisModuleCtx *ctx, RedisModuleString *key, int64_t now_ms, record *r);
lookup_answer lookup_finish(record *r) LOOKUP_MUST_USE;

/* Deletes the record of a key if it has expired, and notes that. Nobody is told of anything yet, so
 * no other module calls a command within. */
void lookup_expire(RedisModuleCtx *ctx, RedisModuleString *key, int64_t now_ms, removals *gone);

/* For each key of a command with many: those that match no prefix are the server's own if the
 * command was sent as one of its own, as when it was queued they still matched one. */
bool lookup_is_servers_own(const RedisModuleString *key, bool sent_native);
lookup_answer lookup_finish_of_many(record *r, bool sent_native) LOOKUP_MUST_USE;

/* What lookup_key() would answer. Cheaper than finding. */
lookup_answer lookup_possible(RedisModuleCtx *ctx, RedisModuleString *key,
                              record *r) LOOKUP_MUST_USE;

/* Replies what an answer stands for, if it is another than LOOKUP_DONE, or holds the client until
 * that can be said: then false. */
bool lookup_reply_answer(const record *r, RedisModuleString **argv, int argc,
                         lookup_answer answer) LOOKUP_MUST_USE;

/* For commands that count what is no record as missing: whether the map of a key is not on its way.
 * All keys of a command are in one slot, so one of them stands for all; who was held has one key,
 * as of more the server itself says that they are on their way. False: the error is replied, or the
 * client held. */
bool lookup_arrived(RedisModuleCtx *ctx, RedisModuleString *key) LOOKUP_MUST_USE;

#endif
