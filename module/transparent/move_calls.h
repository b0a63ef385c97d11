/*
 * move_calls.h: moves for which the filter calls commands, as these may tell an AOF and replicas:
 * what a filter replicates itself goes nowhere. Keys that wait to be moved are kept in
 * dictionaries, NULL where there is none.
 */
#ifndef CKV_MOVE_CALLS_H
#define CKV_MOVE_CALLS_H

#include "ckv.h"

/* Names of our commands that do it. */
#define MOVE_CALL_OUT  CKV_ASKING_PREFIX "moveout"
#define MOVE_CALL_BACK CKV_ASKING_PREFIX "moveback"

/* One of them, of a key in every database. */
void move_call(const char *command, RedisModuleString *key);

void move_calls_add(RedisModuleDict **keys, const RedisModuleString *key);
/* Takes them all, each to `handle`: who is told of a move may call commands, and so add others. */
void move_calls_each(RedisModuleDict **keys, void (*handle)(RedisModuleString *key));

#endif
