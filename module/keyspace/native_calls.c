/* native_calls.c: see native_calls.h. */
#include "keyspace/native_calls.h"

#include "keyspace/names.h"
#include "server/own_call.h"
#include "server/renamed.h"
#include "server/role.h"

#include <string.h>

/* By name, how many; NULL: none. */
static RedisModuleDict *calls, *failures;

static uint64_t count_of(RedisModuleDict *d, const char *command) {
    return d ? (uintptr_t)RedisModule_DictGetC(d, (void *)command, strlen(command), NULL) : 0;
}

static void count(RedisModuleDict **d, const char *command) {
    if (!*d) *d = RedisModule_CreateDict(NULL);
    RedisModule_DictReplaceC(*d, (void *)command, strlen(command),
                             (void *)(uintptr_t)(count_of(*d, command) + 1));
}

void native_note_call(const char *command) {
    count(&calls, command);
}

RedisModuleCallReply *native_note_reply(const char *command, RedisModuleCallReply *reply) {
    if (reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_ERROR)
        count(&failures, command);
    return reply;
}

uint64_t native_calls_of(const char *command) {
    return count_of(calls, command);
}

uint64_t native_failures_of(const char *command) {
    return count_of(failures, command);
}

void native_forget_calls(void) {
    names_free(&calls);
    names_free(&failures);
}

/* False: it can't be asked. */
static bool ask_memory_usage(RedisModuleCtx *ctx, RedisModuleString *key, size_t *bytes) {
    native_note_call(NATIVE_MEMORY_USAGE);
    RedisModuleCallReply *reply = own_call(ctx, renamed_to("memory"), "cs", "USAGE", key);
    int type = reply ? RedisModule_CallReplyType(reply) : REDISMODULE_REPLY_ERROR;
    bool there = type == REDISMODULE_REPLY_INTEGER;
    *bytes = there ? (size_t)RedisModule_CallReplyInteger(reply) : 0;
    if (reply) RedisModule_FreeCallReply(reply);
    return there || type == REDISMODULE_REPLY_NULL;
}

size_t native_memory_usage(RedisModuleCtx *ctx, RedisModuleString *key) {
    size_t bytes;
    ask_memory_usage(ctx, key, &bytes);
    return bytes;
}

bool native_is_spent(RedisModuleCtx *ctx, RedisModuleString *key) {
    size_t bytes;
    if (!role_keeps_expired(ctx)) return false;
    return !ask_memory_usage(ctx, key, &bytes) || bytes > 0;
}
