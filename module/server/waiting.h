/* waiting.h: clients that wait for background work to be done. */
#ifndef CKV_WAITING_H
#define CKV_WAITING_H

#include "redismodule.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct waiting {
    RedisModuleBlockedClient **clients;
    size_t count;
} waiting;

/* Whether the client of a command can be blocked: not in MULTI or a script. */
bool waiting_possible(RedisModuleCtx *ctx);
/* Blocks the client of a command until waiting_answer(). False: that is not possible, the error is
 * replied. */
bool waiting_add(RedisModuleCtx *ctx, waiting *w);

/* Replies to all who wait: OK, or the error if one is given (a string constant). */
void waiting_answer(waiting *w, const char *error);

#endif
