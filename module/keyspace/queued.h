/*
 * queued.h: keys that a transaction will use with commands that only the server can run.
 *
 * Such a command needs the key's record moved out before it runs, and within EXEC nobody comes by
 * between one command and the next. So the keys are remembered when the commands are queued, moved
 * out before EXEC, and commands of ours that EXEC runs leave them to the server: its own command
 * then does what ours would have done.
 *
 * Who is in a transaction can't be seen when a command is queued (Redis 7.0), so the keys of all
 * such commands are remembered while any transaction is open. It does no harm to remember one too
 * many.
 */
#ifndef CKV_QUEUED_H
#define CKV_QUEUED_H

#include "ckv.h"

/* A client has begun a transaction; one has ended, with EXEC or without. */
void queued_begin(void);
void queued_end(void);

/* Whether any is open. */
bool queued_open(void);
/* Whether none is: a count has found none, and no client has begun one since. Where any client can
 * end a transaction that it has not begun, queued_open() may not notice one. */
bool queued_surely_none(void);
/* One may have begun where nobody saw it. */
void queued_doubt(void);
/* How many there really are, where somebody has counted: a client that is gone has not said so. */
void queued_correct(size_t transactions);

/* Remembers a key. */
void queued_note(const char *key, size_t len);

/* Whether a command that EXEC runs leaves this key to the server. */
bool queued_holds(RedisModuleCtx *ctx, RedisModuleString *key);

/* Calls `each` with every key that is remembered. */
typedef void queued_visitor(RedisModuleString *key);
void queued_each(queued_visitor *each);

#endif
