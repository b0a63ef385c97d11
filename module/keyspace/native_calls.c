/* native_calls.c: see native_calls.h. */
#include "keyspace/native_calls.h"

#include "keyspace/names.h"
#include "server/own_call.h"
#include "server/renamed.h"
#include "server/role.h"

#include <errno.h>
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

/* There may be no command of that name: it goes by another, or is taken away. */
static size_t ask_usage(RedisModuleCtx *ctx, RedisModuleString *key, bool *is_command) {
    size_t bytes = 0;
    native_note_call(NATIVE_MEMORY_USAGE);
    errno = 0;
    RedisModuleCallReply *reply = own_call(ctx, renamed_to("memory"), "cs", "USAGE", key);
    *is_command = reply || errno != ENOENT;
    if (reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_INTEGER)
        bytes = (size_t)RedisModule_CallReplyInteger(reply);
    if (reply) RedisModule_FreeCallReply(reply);
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
