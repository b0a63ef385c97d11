/* child.h: whether a child process is at work, for a save, a rewrite of the AOF or a replica. It
 * shares our memory, so that writing to a page copies it. A module can ask to be told by one
 * function only. */
#ifndef CKV_CHILD_H
#define CKV_CHILD_H

#include "ckv.h"

/* Told of a child that has been born, or is gone. */
typedef void child_listener(RedisModuleCtx *ctx, bool born);

/* Once; false: the server would not tell. */
bool child_start(RedisModuleCtx *ctx, child_listener *told);

bool child_at_work(void);

#endif
