/* renamed.c: names that redis.conf gives commands. See renamed.h. */
#include "server/renamed.h"

#include "server/names.h"
#include "server/own_call.h"
#include "server/version.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_LEN 64

/* By the name that it goes by, the command's own. NULL: none. */
static RedisModuleDict *own_names;

/* What COMMAND INFO tells first of its i-th command, which is the own name; NULL: there is no such
 * command. */
static RedisModuleCallReply *own_name(RedisModuleCallReply *reply, size_t i) {
    RedisModuleCallReply *info = reply ? RedisModule_CallReplyArrayElement(reply, i) : NULL;
    bool known = info && RedisModule_CallReplyType(info) == REDISMODULE_REPLY_ARRAY;
    return known ? RedisModule_CallReplyArrayElement(info, 0) : NULL;
}

void renamed_which(RedisModuleCtx *ctx, RedisModuleString *const *commands, size_t count,
                   bool *renamed) {
    RedisModuleCallReply *reply = own_call(ctx, "command|info", "cv", "INFO", commands, count);
    for (size_t i = 0; i < count; i++) renamed[i] = !own_name(reply, i);
    own_call_drop(reply);
}

static const char *const looked_for[] = {
#define NAME(id, name) name,
    RENAMED_LOOKED_FOR(NAME)
#undef NAME
};
#define LOOKED_FOR (sizeof looked_for / sizeof *looked_for)

static bool any_of(const char *const *commands, size_t count, bool *renamed) {
    RedisModuleString *names[LOOKED_FOR] = {0};
    bool any = false;
    for (size_t i = 0; i < count; i++)
        names[i] = RedisModule_CreateString(NULL, commands[i], strlen(commands[i]));
    renamed_which(ckv.ctx, names, count, renamed);
    for (size_t i = 0; i < count; i++) {
        any |= renamed[i];
        RedisModule_FreeString(NULL, names[i]);
    }
    return any;
}

static bool any_renamed;

void renamed_start(void) {
    bool renamed[LOOKED_FOR];
    any_renamed = any_of(looked_for, version_is_7_0() ? LOOKED_FOR - 1 : LOOKED_FOR, renamed);
}

/* Whose the slots are only a cluster tells, and what users may only Redis 7.0 does by ACL. */
static bool is_needed_here(const char *command) {
    if (!strcmp(command, "cluster") || !strcmp(command, "object"))
        return RedisModule_GetContextFlags(ckv.ctx) & REDISMODULE_CTX_FLAGS_CLUSTER;
    return strcmp(command, "acl") != 0 || version_is_7_0();
}

const char *renamed_needed(void) {
    static const char *const needed[] = {"command",  "client", "set",      "mset",      "append",
                                         "setrange", "incrby", "persist",  "pexpireat", "del",
                                         "unlink",   "lrange", "smembers", "zrange",    "cluster",
                                         "object",   "acl"};
    enum { COUNT = sizeof needed / sizeof *needed };
    _Static_assert(COUNT <= LOOKED_FOR, "there is room for their names");
    bool renamed[COUNT];
    const char *first = NULL;
    any_of(needed, COUNT, renamed);
    for (size_t i = 0; i < COUNT && !first; i++)
        if (renamed[i] && is_needed_here(needed[i])) first = needed[i];
    return first;
}

/* Names stay for as long as the server runs: no more than it has commands. */
static const char *learn(const char *name) {
    size_t len;
    RedisModuleCallReply *reply = own_call(ckv.ctx, "command|info", "cc", "INFO", name);
    RedisModuleCallReply *own = own_name(reply, 0);
    const char *text = own ? RedisModule_CallReplyStringPtr(own, &len) : NULL;
    char *copy = text ? RedisModule_Calloc(1, len + 1) : NULL;
    if (copy) {
        memcpy(copy, text, len);
        names_put(&own_names, name, strlen(name), copy);
        if (strcmp(copy, name)) own_call_goes_by(copy, name);
    }
    own_call_drop(reply);
    return copy;
}

const char *renamed_own_name(const char *name, size_t len) {
    char lower[NAME_MAX_LEN + 1] = {0};
    if (len == 0 || len > NAME_MAX_LEN || memchr(name, 0, len)) return NULL;
    for (size_t i = 0; i < len; i++) lower[i] = (char)tolower((unsigned char)name[i]);
    const char *own = names_get(own_names, lower, strlen(lower));
    return own ? own : learn(lower);
}

const char *renamed_sent(const RedisModuleString *name) {
    size_t len;
    const char *sent = RedisModule_StringPtrLen(name, &len);
    const char *own = any_renamed ? renamed_own_name(sent, len) : NULL;
    return own ? own : sent;
}

bool renamed_is(const char *sent, renamed_command command) {
    return !strcasecmp(sent, looked_for[command]);
}
