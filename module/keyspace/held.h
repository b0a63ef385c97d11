/*
 * held.h: clients of a slot whose records are on their way (tryagain.h).
 *
 * TRYAGAIN is right for them, but cluster clients try again a few times only, which is over (in
 * redis-py, after 0.4 s) before a slot of any size has arrived. So a client is held, until the map
 * is there or the server serves the slot for good; then its command runs as if it came now. After a
 * second, or a tenth of one after the slot was given back, it gets TRYAGAIN.
 *
 * Who can't wait gets that at once: in a transaction, in a script. So does who tracks keys: the
 * server would not take note of what a command has read when it is not the server that runs it.
 */
#ifndef CKV_HELD_H
#define CKV_HELD_H

#include "ckv.h"

/* What runs a command of this name; for each that may be held. */
void held_know(const char *name, RedisModuleCmdFunc function);
/* The module is not loaded after all. */
void held_give_back(void);

/* Holds the client of the running command, which has not replied yet, or replies TRYAGAIN. */
void held_reply(RedisModuleCtx *ctx, int db, uint32_t place);

/* Once. While any are held it is seen every 10 ms who need not wait any more. */
void held_start(RedisModuleCtx *ctx);

#endif
