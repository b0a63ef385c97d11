/* native_calls.h: commands of the server's that the module calls. Which they were is counted, so
 * that INFO can leave them out (transparent/serve_info.c). */
#ifndef CKV_NATIVE_CALLS_H
#define CKV_NATIVE_CALLS_H

#include "ckv.h"

/* The server counts a command that is served and calls its own as both: that it was called from
 * here, by its name in lower case, how often, and how often it failed; from now on it was not. */
void native_note_call(const char *command);
/* What it replied, which is returned. */
RedisModuleCallReply *native_note_reply(const char *command, RedisModuleCallReply *reply);
uint64_t native_calls_of(const char *command);
uint64_t native_failures_of(const char *command);
void native_forget_calls(void);

/* What MEMORY USAGE says of a key, bytes; 0: there is none, or this server can't be asked (replicas
 * in a cluster). */
#define NATIVE_MEMORY_USAGE "memory|usage"
size_t native_memory_usage(RedisModuleCtx *ctx, RedisModuleString *key);

/* Of a key that cannot be opened: whether it is there all the same, or may be. What has expired is
 * kept, and not seen, on a replica and while clients are paused; the server dies of what is put in
 * its place. */
bool native_is_spent(RedisModuleCtx *ctx, RedisModuleString *key);

#endif
