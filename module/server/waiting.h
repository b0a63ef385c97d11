/* waiting.h: clients that wait for background work to be done. */
#ifndef CKV_WAITING_H
#define CKV_WAITING_H

#include "redismodule.h"

#include <stddef.h>

typedef struct waiting {
    RedisModuleBlockedClient **clients;
    size_t count;
} waiting;

/* Blocks the client of a command until waiting_answer(); replies an error (and adds nobody) where
 * blocking is not possible, in MULTI or a script. */
int waiting_add(RedisModuleCtx *ctx, waiting *w);

/* Replies to all who wait: OK, or the error if one is given (a string constant). */
void waiting_answer(waiting *w, const char *error);

#endif
