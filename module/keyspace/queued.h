/*
 * queued.h: keys that a transaction will use with commands that only the server can run.
 *
 * Such a command needs the key's record moved out before it runs, and within EXEC nobody comes by
 * between one command and the next. So the record moves out when the command is queued, and as long
 * as the key is remembered here, whoever writes it leaves it to the server: its own command then
 * does what ours would have done.
 *
 * Of a client in a transaction they are remembered until that is over: its EXEC is through, which a
 * pause may have held back, or there will be none.
 *
 *      MULTI, command -> is noted | EXEC -> runs | the server says that the client is in none: goes
 *
 * Of all others until nobody may be in a transaction that is not known, and nothing is held back.
 * So it is with all names on Redis 7.0, which does not tell a filter who sends a command. It does
 * no harm to remember one too many.
 */
#ifndef CKV_QUEUED_H
#define CKV_QUEUED_H

#include "ckv.h"

/* Of a client that is not known. */
#define QUEUED_ANYBODY 0

/* A client begins a transaction; its EXEC comes; or it ends otherwise, or is gone. Anybody can say
 * EXEC without having said MULTI: transactions of anybody end only when somebody has counted. */
void queued_begin(uint64_t client);
void queued_exec(uint64_t client);
void queued_end(uint64_t client);

/* Whether a client may be in a transaction; of anybody, whether some client may. */
bool queued_open(uint64_t client);
/* Whether a client that is known is in one, as the server sees it. */
bool queued_in_transaction(uint64_t client);

/* Somebody has counted the transactions that are open, of all clients. */
void queued_counted(size_t transactions);
/* Whether that is wanted: some may be open of which nothing is known. */
bool queued_doubted(void);

/* Clients that were in a transaction when a prefix was set: of what they have queued nothing is
 * known, so nothing comes into ckv that is not there until they have ended it. It is begun with all
 * who are in one, and then told again and again who still is. */
void queued_begin_unseen(void);
void queued_list_unseen(const uint64_t *clients, size_t count);
bool queued_unseen(void);

/* Remembers a key of a command that is queued, or held back. */
void queued_note(uint64_t client, const char *key, size_t len);
/* A client sends a command that may block, and so runs later too (BLMOVE writes a second key when
 * the first has come to be). Its keys are remembered until it, if it is known, is looked at and
 * waits no more, sends another such command or goes; those of one that is not until somebody has
 * seen that no client waits so. */
void queued_await_begin(uint64_t client);
void queued_await(uint64_t client, const char *key, size_t len);
bool queued_awaits(void);
bool queued_awaits_unknown(void);
void queued_await_look(void);
void queued_await_no_more(void);
/* Whether every key is left to the server, as it is not known which ones are needed. */
bool queued_has_all(void);
/* Whether a key is left to the server. Not on a replica in a cluster, where what has left comes
 * back at once, and leaves again with EXEC (transparent/lent.h); and not what a file brings, which
 * leaves when that is loaded. */
bool queued_has(const RedisModuleString *key);

/* Whether any key is remembered of a command that is queued, or held back; and each of a client's.
 */
bool queued_any(void);
typedef void queued_told(const char *name, size_t len);
void queued_each(uint64_t client, queued_told *told);

#endif
