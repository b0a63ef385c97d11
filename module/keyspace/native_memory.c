/* native_memory.c: see native_memory.h. */
#include "keyspace/native_memory.h"

#include "server/own_call.h"
#include "server/role.h"

#include <errno.h>

/* There may be no command of that name: it goes by another, or is taken away. */
static size_t ask_usage(RedisModuleCtx *ctx, RedisModuleString *key, bool *is_command) {
    size_t bytes = 0;
    errno = 0;
    RedisModuleCallReply *reply = own_call(ctx, "memory|usage", "cs", "USAGE", key);
    *is_command = reply || errno != ENOENT;
    if (reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_INTEGER)
        bytes = (size_t)RedisModule_CallReplyInteger(reply);
    own_call_drop(reply);
    return bytes;
}

size_t native_memory_usage(RedisModuleCtx *ctx, RedisModuleString *key) {
    bool is_command;
    return ask_usage(ctx, key, &is_command);
}

bool native_is_spent(RedisModuleCtx *ctx, RedisModuleString *key) {
    bool is_command;
    return role_keeps_expired(ctx) && (ask_usage(ctx, key, &is_command) > 0 || !is_command);
}
