/*
 * sort_keys.h: keys that SORT reads without naming them: SORT list BY weight_* GET data_* makes
 * them of its patterns and the elements of what it sorts.
 */
#ifndef CKV_SORT_KEYS_H
#define CKV_SORT_KEYS_H

#include "ckv.h"

/* Whether a command may make some. */
bool sort_keys_any(RedisModuleString **argv, int argc);

/* Whether the server finds the key that is written by looking for the word STORE, as it does for
 * our command: not where a key or a pattern is called so. In a cluster older ones don't look, so
 * that it has to be in the slot of what is sorted. */
bool sort_keys_can_tell(RedisModuleString **argv, int argc);

/* Whether what is sorted is to stay in the order that it is in: BY without a star. */
bool sort_keys_in_order(RedisModuleString **argv, int argc);

/* The words of an option, with it. */
int sort_keys_words(RedisModuleString *option);

/* Calls `leave` for each such key: by what is sorted in the database of a running command, as whose
 * sender it is read (only of him a replica in a cluster knows that he may); NULL: in every one. */
void sort_keys_leave(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                     void (*leave)(RedisModuleString *key));

#endif
