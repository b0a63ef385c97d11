/*
 * no_touch.h: clients whose reads are no uses (CLIENT NO-TOUCH ON), as far as they were seen to say
 * so: the server does not tell modules. Eviction goes by uses, so a wrong guess costs nobody more.
 *
 * Redis before 8.6 and Valkey before 9.1 (seen with 8.0.2 and 8.1.1) crash where a module looks for
 * a key before a command of such a client runs, as a filter may: their look-up asks which command
 * it is for, and there is none yet. So there no client is let have it while the filter
 * looks for keys: it is told OK, and its reads are no uses of records. Who has it when that begins
 * is disconnected, and so is who has it by what had been queued before, or was held back.
 */
#ifndef CKV_NO_TOUCH_H
#define CKV_NO_TOUCH_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/* At load: from now on the filter is attended. REDISMODULE_OK, or REDISMODULE_ERR. */
int no_touch_start(RedisModuleCtx *ctx);
void no_touch_give_back(void);
/* A client has gone. */
void no_touch_forget(uint64_t client);

/* Whether the client that runs a command is one of them. */
bool no_touch(RedisModuleCtx *ctx);

#endif
