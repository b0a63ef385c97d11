/*
 * sort_keys.h: keys that SORT reads without naming them: SORT list BY weight_* GET data_* makes
 * them of its patterns and the elements of what it sorts.
 */
#ifndef CKV_SORT_KEYS_H
#define CKV_SORT_KEYS_H

#include "ckv.h"

/* Whether a command may make some. */
bool sort_keys_any(RedisModuleString **argv, int argc);

/* Calls `leave` for each such key, in every database that has what is sorted. */
void sort_keys_leave(RedisModuleString **argv, int argc, void (*leave)(RedisModuleString *key));

#endif
