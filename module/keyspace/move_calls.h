/*
 * move_calls.h: moves for which the filter calls commands, as these may tell an AOF and replicas:
 * what a filter replicates itself goes nowhere. Keys that wait to be moved are kept in
 * dictionaries, NULL where there is none, each behind a number: that of its database, or of the
 * client that needs it.
 */
#ifndef CKV_MOVE_CALLS_H
#define CKV_MOVE_CALLS_H

#include "ckv.h"

/* Names of our commands that do it. */
#define MOVE_CALL_OUT  CKV_ASKING_PREFIX "moveout"
#define MOVE_CALL_BACK CKV_ASKING_PREFIX "moveback"

/* One of them, of a key in a database. */
void move_call(const char *command, uint64_t db, RedisModuleString *key);

void move_calls_add(RedisModuleDict **keys, uint64_t number, const RedisModuleString *key);
bool move_calls_has(RedisModuleDict *keys, uint64_t number, const RedisModuleString *key);
void move_calls_drop(RedisModuleDict **keys, uint64_t number, const RedisModuleString *key);
/* Adds all of a dictionary of names, which may be NULL. */
void move_calls_add_all(RedisModuleDict **keys, uint64_t number, RedisModuleDict *names);

/* Takes them all, each to `handle`: who is told of a move may call commands, and so add others. */
typedef void move_calls_handle(uint64_t number, RedisModuleString *key);
void move_calls_each(RedisModuleDict **keys, move_calls_handle *handle);

#endif
