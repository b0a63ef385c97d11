/* caller.c: another module, which calls commands as modules do.
 *
 *   CALLER.CALL <modifiers> <command> [arg ...]   what RM_Call with these modifiers says
 *   CALLER.ON <event> <command> [arg ...]         call that whenever told of such an event; "=" is
 *                                                 the event's key, and the command RM_StringSet is
 *                                                 none: key and value
 *   CALLER.ON !<event> ...                        the same, and replicate it
 *   CALLER.ON                                     no more; how often that was
 *   CALLER.PUSH <key> <element>                   as LPUSH, named in upper case
 *   CALLER.FILTER                                 a filter that calls APPEND list x before each
 *                                                 command
 *   CALLER.FILTER UPPER                           a filter that writes its name in capitals
 */
#include "redismodule.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int call(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RedisModule_WrongArity(ctx);
    char format[32];
    snprintf(format, sizeof format, "v%s", RedisModule_StringPtrLen(argv[1], NULL));
    errno = 0;
    RedisModuleCallReply *reply = RedisModule_Call(ctx, RedisModule_StringPtrLen(argv[2], NULL),
                                                   format, argv + 3, (size_t)argc - 3);
    if (!reply) return RedisModule_ReplyWithError(ctx, strerror(errno));
    RedisModule_ReplyWithCallReply(ctx, reply);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

#define ARGS_MAX 8

static struct {
    RedisModuleString *event, *command, *args[ARGS_MAX];
    size_t count;
    long long calls;
    bool calling, replicates;
} on;

static bool is(RedisModuleString *s, const char *text) {
    return !strcmp(RedisModule_StringPtrLen(s, NULL), text);
}

static void set_string(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString *value) {
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_WRITE);
    RedisModule_StringSet(key, value);
    RedisModule_CloseKey(key);
}

static void call_for_event(RedisModuleCtx *ctx, RedisModuleString **args) {
    if (is(on.command, "RM_StringSet")) {
        set_string(ctx, args[0], args[1]);
        return;
    }
    RedisModuleCallReply *reply = RedisModule_Call(ctx, RedisModule_StringPtrLen(on.command, NULL),
                                                   on.replicates ? "!v" : "v", args, on.count);
    if (reply) RedisModule_FreeCallReply(reply);
}

static int on_event(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *key) {
    (void)type;
    if (on.calling || !on.event) return REDISMODULE_OK;
    if (strcmp(RedisModule_StringPtrLen(on.event, NULL) + on.replicates, event))
        return REDISMODULE_OK;
    RedisModuleString *args[ARGS_MAX];
    for (size_t i = 0; i < on.count; i++) args[i] = is(on.args[i], "=") ? key : on.args[i];
    on.calling = true;
    call_for_event(ctx, args);
    on.calling = false;
    on.calls++;
    return REDISMODULE_OK;
}

static int set_on(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc == 2 || argc > ARGS_MAX + 3) return RedisModule_WrongArity(ctx);
    on.event = NULL; /* what was kept is a few bytes */
    long long calls = on.calls;
    on.calls = 0;
    if (argc == 1) return RedisModule_ReplyWithLongLong(ctx, calls);
    for (int i = 1; i < argc; i++) RedisModule_RetainString(NULL, argv[i]);
    on.event = argv[1];
    on.replicates = *RedisModule_StringPtrLen(on.event, NULL) == '!';
    on.command = argv[2];
    on.count = (size_t)argc - 3;
    memcpy(on.args, argv + 3, on.count * sizeof *argv);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static RedisModuleCtx *detached;

static void append(RedisModuleCommandFilterCtx *command) {
    (void)command;
    RedisModuleCallReply *reply = RedisModule_Call(detached, "APPEND", "cc", "list", "x");
    if (reply) RedisModule_FreeCallReply(reply);
}

static void write_upper(RedisModuleCommandFilterCtx *command) {
    size_t len;
    const char *name =
        RedisModule_StringPtrLen(RedisModule_CommandFilterArgGet(command, 0), &len);
    char upper[64];
    if (len > sizeof upper) return;
    for (size_t i = 0; i < len; i++) upper[i] = (char)toupper((unsigned char)name[i]);
    if (!memcmp(upper, name, len)) return;
    RedisModule_CommandFilterArgReplace(command, 0, RedisModule_CreateString(NULL, upper, len));
}

static int set_filter(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv;
    if (argc > 1)
        RedisModule_RegisterCommandFilter(ctx, write_upper, 0);
    else
        RedisModule_RegisterCommandFilter(ctx, append, REDISMODULE_CMDFILTER_NOSELF);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static int push(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
    bool pushed = RedisModule_ListPush(key, REDISMODULE_LIST_HEAD, argv[2]) == REDISMODULE_OK;
    RedisModule_CloseKey(key);
    if (!pushed) return RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithLongLong(ctx, 1);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (RedisModule_Init(ctx, "caller", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    RedisModule_SubscribeToKeyspaceEvents(
        ctx, REDISMODULE_NOTIFY_ALL | REDISMODULE_NOTIFY_KEY_MISS | REDISMODULE_NOTIFY_NEW,
        on_event);
    detached = RedisModule_GetDetachedThreadSafeContext(ctx);
    if (RedisModule_CreateCommand(ctx, "caller.on", set_on, "", 0, 0, 0) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "CALLER.PUSH", push, "write", 1, 1, 1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "caller.filter", set_filter, "", 0, 0, 0) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    return RedisModule_CreateCommand(ctx, "caller.call", call, "write", 0, 0, 0);
}
