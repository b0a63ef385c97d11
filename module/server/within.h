/* within.h: whether what runs is one of several commands: of a transaction, or of a script. The
 * same for every context. */
#ifndef CKV_WITHIN_H
#define CKV_WITHIN_H

#include "redismodule.h"

#include <stdbool.h>

static inline bool within(int flags) {
    return RedisModule_GetContextFlags(NULL) & flags;
}

/* An EXEC is under way. */
static inline bool within_exec(void) {
    return within(REDISMODULE_CTX_FLAGS_MULTI);
}

/* A script or function is. */
static inline bool within_script(void) {
    return within(REDISMODULE_CTX_FLAGS_LUA);
}

static inline bool within_exec_or_script(void) {
    return within(REDISMODULE_CTX_FLAGS_MULTI | REDISMODULE_CTX_FLAGS_LUA);
}

#endif
