/*
 * lent.h: what a replica in a cluster lends to commands of its own clients.
 *
 * Slots leave map by map, so such a replica has to hold in its maps what its primary does. The
 * primary knows nothing of what moves out for a client of the replica, and tells it to delete the
 * map when the slot leaves. So that comes back, when all that the server has read has run:
 *
 *      command -> moves out -> runs | timer: moves in
 *      MULTI, command -> is noted   | EXEC -> moves out -> runs | timer: moves in
 *
 * What is noted is kept, however much it is and whether there is a record yet, as long as its
 * transaction may be open. On Redis 7.0, which does not tell whether a command is queued, it moves
 * out when it comes as well.
 *
 * It also moves in before a command that is about a map or writes a file. When a replica has become
 * a primary, what transactions need leaves for good.
 */
#ifndef CKV_LENT_H
#define CKV_LENT_H

#include "keyspace/numbered_names.h"

void lent_start(RedisModuleCtx *ctx);

/* A key of a database has moved out; whether it has, of any. */
void lent_note(uint64_t db, const RedisModuleString *key);
bool lent_has(const RedisModuleString *key);
/* The primary has it in this form as well: it does not come back. */
void lent_no_more(uint64_t db, const RedisModuleString *key);

/* Whether a command of that client, or of QUEUED_ANYBODY, may be queued here. If it may run, its
 * key is needed when EXEC comes; there: it has a record. True: it need not leave before. What a
 * pause holds back has to, as it may run unseen. */
bool lent_may_queue(uint64_t client);
bool lent_to_queued(uint64_t client, const RedisModuleString *key, bool there);
/* A client watches a key that is lent: the server has to see its expiry when its EXEC comes. */
void lent_to_watcher(uint64_t client, const RedisModuleString *key);

/* Whether something is lent; before a command that is about a map, or writes a file, it comes back,
 * unless another one is under way. In a pause of all writes nobody may be told: `back_in_pause` is
 * called for what is to come back. */
bool lent_any(void);
void lent_before_map(numbered_handle *back_in_pause);
void lent_before_file(void);

/* Before a command is looked at: `leave` is called for what has to leave for good. */
void lent_catch_up(numbered_handle *leave);

/* A client's EXEC comes: `leave` is called for each key that its commands need. */
void lent_to_exec(uint64_t client, numbered_handle *leave);
/* Its transaction has ended otherwise, it watches no more, or it is gone. */
void lent_forget(uint64_t client);

#endif
