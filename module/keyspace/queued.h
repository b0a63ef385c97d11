/*
 * queued.h: keys that a transaction will use with commands that only the server can run.
 *
 * Such a command needs the key's record moved out before it runs, and within EXEC nobody comes by
 * between one command and the next. So the record moves out when the command is queued, and as long
 * as the key is remembered here, whoever writes it leaves it to the server: its own command then
 * does what ours would have done.
 *
 * Who is in a transaction can't be seen when a command is queued (Redis 7.0), so the keys of all
 * such commands are remembered while any transaction may be open. It does no harm to remember one
 * too many. No more can be seen which EXEC, DISCARD or RESET ends one, and which fails: that one
 * has begun is noticed at once, how many there still are is counted now and then.
 */
#ifndef CKV_QUEUED_H
#define CKV_QUEUED_H

#include "ckv.h"

/* A client may have begun a transaction. */
void queued_begin(void);

/* Whether any may be open. */
bool queued_open(void);

/* What counting has found, between commands: whether any is open, and whether the client of one of
 * these has sent anything since the last time. */
void queued_correct(bool open, bool busy);

/* Remembers a key. */
void queued_note(const char *key, size_t len);

/* Whether a key is left to the server. */
bool queued_holds(RedisModuleString *key);

#endif
