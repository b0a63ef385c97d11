/* native_calls.c: see native_calls.h. */
#include "keyspace/native_calls.h"

#include "server/own_call.h"

#include <string.h>

static RedisModuleDict *calls; /* by name, how many; NULL: none */

void native_note_call(const char *command) {
    if (!calls) calls = RedisModule_CreateDict(NULL);
    RedisModule_DictReplaceC(calls, (void *)command, strlen(command),
                             (void *)(uintptr_t)(native_calls_of(command) + 1));
}

uint64_t native_calls_of(const char *command) {
    return calls ? (uintptr_t)RedisModule_DictGetC(calls, (void *)command, strlen(command), NULL)
                 : 0;
}

void native_forget_calls(void) {
    if (calls) RedisModule_FreeDict(NULL, calls);
    calls = NULL;
}

size_t native_memory_usage(RedisModuleCtx *ctx, RedisModuleString *key) {
    size_t bytes = 0;
    native_note_call(NATIVE_MEMORY_USAGE);
    RedisModuleCallReply *reply = own_call(ctx, "MEMORY", "cs", "USAGE", key);
    if (reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_INTEGER)
        bytes = (size_t)RedisModule_CallReplyInteger(reply);
    if (reply) RedisModule_FreeCallReply(reply);
    return bytes;
}
