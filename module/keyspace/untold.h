/*
 * untold.h: strings that have moved out within a command that another one called, which may have
 * said that nobody is to be told.
 *
 *      MULTI | a call: moves out | INCR: told, as the server's own | EXEC | next command
 *                                 ^                                        ^
 *                                 told of the move here, if anybody is     for certain
 *
 * An AOF that has the record would not find it for what it is told of the string. So it is told of
 * the move before each command on it, which may itself be called by one of which nobody is told; to
 * be told twice is no harm.
 *
 * So with what moves out while its slot arrives by atomic migration: what comes with it the server
 * passes on to its replicas as it came, and drops whatever else they are told meanwhile. They are
 * told when the slot is here, from between commands.
 */
#ifndef CKV_UNTOLD_H
#define CKV_UNTOLD_H

#include "ckv.h"

void untold_start(RedisModuleCtx *ctx);

/* Where nothing is under way, who listens to pauses (server/pause.h) calls untold_tell_all(). */
void untold_note(uint64_t db, const RedisModuleString *key);
/* Whether a key's slot is arriving here. */
bool untold_arrives(const RedisModuleString *key);
/* A command of ours has moved a string of ctx's database out: it is told, and noted if that may be
 * in vain. */
void untold_moved_out(RedisModuleCtx *ctx, RedisModuleString *key);
bool untold_any(void);
/* An EXEC comes. */
void untold_exec(void);
/* Whether anybody can be told anything: where writes are paused the server would end itself, but in
 * the transaction that has paused them. */
bool untold_may_tell(void);

/* Before the server may do something of its own with a key. */
void untold_tell(RedisModuleString *key);
/* Of all, which are forgotten. */
void untold_tell_all(void);

#endif
