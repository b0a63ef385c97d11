/*
 * move_call.h: moves for which the filter calls commands, as these may tell an AOF and replicas:
 * what a filter replicates itself goes nowhere.
 */
#ifndef CKV_MOVE_CALL_H
#define CKV_MOVE_CALL_H

#include "ckv.h"

/* Names of our commands that do it. */
#define MOVE_CALL_OUT  CKV_ASKING_PREFIX "moveout"
#define MOVE_CALL_BACK CKV_ASKING_PREFIX "moveback"

/* One of them, of a key in a database. */
void move_call(const char *command, uint64_t db, RedisModuleString *key);

#endif
