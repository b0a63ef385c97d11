/*
 * queued.h: keys that a transaction will use with commands that only the server can run.
 *
 * Such a command needs the key's record moved out before it runs, and within EXEC nobody comes by
 * between one command and the next. So the keys are remembered when the commands are queued; those
 * that have become records meanwhile are moved out before EXEC; and commands of ours that EXEC runs
 * leave all of them to the server: its own command then does what ours would have done.
 *
 * Redis 7.0 does not tell a filter who sends a command: there the keys of all such commands are
 * remembered while any transaction is open. It does no harm to remember one too many.
 */
#ifndef CKV_QUEUED_H
#define CKV_QUEUED_H

#include "ckv.h"

/* Of a client that is not known. */
#define QUEUED_ANYBODY 0

/* A client has begun a transaction, or has ended it, with EXEC or without. Anybody can say EXEC
 * without having said MULTI: transactions of anybody end only when somebody has counted. */
void queued_begin(uint64_t client);
void queued_end(uint64_t client);

/* Whether a client may be in a transaction; of anybody, whether some client may. */
bool queued_open(uint64_t client);

/* Somebody has counted the transactions that are open, of all clients. */
void queued_counted(size_t transactions);
/* Whether that is wanted: some may be open of which nothing is known. */
bool queued_doubted(void);

/* Remembers a key of a command that is queued. */
void queued_note(const char *key, size_t len);
/* A record has come to be: if its key is remembered, it must move out before EXEC. */
void queued_record_made(RedisModuleString *key);

/* Whether a command that EXEC runs leaves this key to the server. */
bool queued_holds(RedisModuleCtx *ctx, RedisModuleString *key);

/* Calls `each` with every key that is remembered and has become a record since, and forgets that it
 * has. */
typedef void queued_visitor(RedisModuleString *key);
void queued_each_made(queued_visitor *each);

#endif
