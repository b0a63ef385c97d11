/* native_memory.h: what MEMORY USAGE knows of keys of the server's own. */
#ifndef CKV_NATIVE_MEMORY_H
#define CKV_NATIVE_MEMORY_H

#include "ckv.h"

/* What it says of a key, bytes; 0: there is none, or this server can't be asked (replicas in a
 * cluster). */
size_t native_memory_usage(RedisModuleCtx *ctx, RedisModuleString *key);

/* Of a key that cannot be opened: whether it is there all the same, or may be. What has expired is
 * kept, and not seen, on a replica and while clients are paused; the server dies of what is put in
 * its place. */
bool native_is_spent(RedisModuleCtx *ctx, RedisModuleString *key);

#endif
