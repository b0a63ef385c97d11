/* expire_args.h: the times that commands are given: EX s, PX ms, EXAT s, PXAT ms. */
#ifndef CKV_EXPIRE_ARGS_H
#define CKV_EXPIRE_ARGS_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/* How a number is to be read: bits. */
#define EXPIRE_SECONDS  1 /* else milliseconds */
#define EXPIRE_ABSOLUTE 2 /* else from now */

/* How the number behind an option's word is to be read; -1: it is no such option. */
int expire_option(RedisModuleString *word);

/* Takes an option and its number at argv[*i], which becomes that of the number; given again, the
 * last one counts, if it is of the unit of those before it (-1: there was none). False: it is no
 * such option. */
bool expire_take(RedisModuleString **argv, int argc, int *i, int *unit, RedisModuleString **number);

/* Reads a time into *at_ms; one that is further away than can be kept becomes the last that can.
 * False, with the error replied, if it is no integer or out of the range of 64 bits; `positive`: if
 * it is not above zero, either. */
bool expire_read(RedisModuleCtx *ctx, RedisModuleString *command, RedisModuleString *number,
                 int unit, int64_t now_ms, bool positive, int64_t *at_ms);

#endif
