/*
 * no_touch.h: clients whose reads are no uses (CLIENT NO-TOUCH ON), as far as somebody has seen
 * them say so: the server does not tell modules. Eviction goes by uses, so what is forgotten here
 * costs nobody more than that.
 */
#ifndef CKV_NO_TOUCH_H
#define CKV_NO_TOUCH_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/* A client has switched it on or off, or has gone. The latest few are known. */
void no_touch_note(uint64_t client, bool on);

/* Whether the client that runs a command is one of them. */
bool no_touch(RedisModuleCtx *ctx);

#endif
