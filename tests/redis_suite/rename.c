/* rename.c: a stand-in for the transparent mode, for tests of ckv's commands by Redis' own suite.
 *
 *     loadmodule rename.so /path/to/ckv.so
 *
 * It loads ckv and adds a command filter that looks at names only: GET becomes CGET, SET becomes
 * CSET. A generic command (DEL, TTL) becomes ckv's when its first key is one that a renamed command
 * wrote last. There is no merging of both kinds of keys, so DBSIZE, KEYS, SCAN, TYPE, RENAME and
 * errors about other types are wrong by design. */
#include "redismodule.h"

#include <dlfcn.h>
#include <string.h>
#include <strings.h>

typedef enum { WRITES, READS, GENERIC, OTHER_TYPE } kind;

static const struct {
    const char *name;
    kind kind;
} commands[] = {
    {"set", WRITES},         {"setnx", WRITES},       {"setex", WRITES},
    {"psetex", WRITES},      {"getset", WRITES},      {"mset", WRITES},
    {"msetnx", WRITES},      {"msetex", WRITES},      {"delex", READS},
    {"append", WRITES},      {"setrange", WRITES},    {"incr", WRITES},
    {"decr", WRITES},        {"incrby", WRITES},      {"decrby", WRITES},
    {"incrbyfloat", WRITES}, {"get", READS},          {"getdel", READS},
    {"getex", READS},        {"mget", READS},         {"strlen", READS},
    {"getrange", READS},     {"del", GENERIC},        {"unlink", GENERIC},
    {"exists", GENERIC},     {"touch", GENERIC},      {"ttl", GENERIC},
    {"pttl", GENERIC},       {"expiretime", GENERIC}, {"pexpiretime", GENERIC},
    {"expire", GENERIC},     {"pexpire", GENERIC},    {"expireat", GENERIC},
    {"pexpireat", GENERIC},  {"persist", GENERIC},    {"lpush", OTHER_TYPE},
    {"rpush", OTHER_TYPE},   {"sadd", OTHER_TYPE},    {"zadd", OTHER_TYPE},
    {"hset", OTHER_TYPE},    {"xadd", OTHER_TYPE},    {"setbit", OTHER_TYPE},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static RedisModuleString *renamed[N_COMMANDS];
static RedisModuleDict *written; /* the keys that renamed commands wrote */

static int find(const char *name, size_t length) {
    for (int i = 0; i < N_COMMANDS; i++)
        if (strlen(commands[i].name) == length && strncasecmp(commands[i].name, name, length) == 0)
            return i;
    return -1;
}

static int is_written(RedisModuleString *key) {
    int missing;
    RedisModule_DictGet(written, key, &missing);
    return !missing;
}

static void note(RedisModuleCommandFilterCtx *filter, const char *name) {
    int argc = RedisModule_CommandFilterArgsCount(filter);
    int step = strncasecmp(name, "mset", 4) == 0 ? 2 : argc;
    int first = strcasecmp(name, "msetex") == 0 ? 2 : 1;
    for (int i = first; i < argc; i += step)
        RedisModule_DictReplace(
            written, (RedisModuleString *)RedisModule_CommandFilterArgGet(filter, i), NULL);
}

/* ACL SETUSER u +get: may use CGET as well. */
static void permit_renamed(RedisModuleCommandFilterCtx *filter) {
    for (int i = 3; i < RedisModule_CommandFilterArgsCount(filter); i++) {
        size_t length;
        const char *rule =
            RedisModule_StringPtrLen(RedisModule_CommandFilterArgGet(filter, i), &length);
        if (length < 2 || (*rule != '+' && *rule != '-')) continue;
        int found = find(rule + 1, length - 1);
        if (found < 0) continue;
        RedisModuleString *also =
            RedisModule_CreateStringPrintf(NULL, "%cc%s", *rule, commands[found].name);
        RedisModule_CommandFilterArgInsert(filter, ++i, also);
    }
}

static void on_command(RedisModuleCommandFilterCtx *filter) {
    if (RedisModule_CommandFilterArgsCount(filter) < 2) return;
    size_t length;
    const char *name =
        RedisModule_StringPtrLen(RedisModule_CommandFilterArgGet(filter, 0), &length);
    if (length == 3 && strncasecmp(name, "acl", 3) == 0) permit_renamed(filter);
    int found = find(name, length);
    if (found < 0) return;

    RedisModuleString *key = (RedisModuleString *)RedisModule_CommandFilterArgGet(filter, 1);
    switch (commands[found].kind) {
    case WRITES:
        note(filter, name);
        break;
    case READS:
        break;
    case GENERIC:
        if (!is_written(key)) return;
        break;
    case OTHER_TYPE:
        RedisModule_DictDel(written, key, NULL);
        return;
    }
    RedisModule_RetainString(NULL, renamed[found]);
    RedisModule_CommandFilterArgReplace(filter, 0, renamed[found]);
}

/* ckv's own start, within this module: to the server both are one module with ckv's name. */
static int load_ckv(RedisModuleCtx *ctx, const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        RedisModule_Log(ctx, "warning", "rename: %s", dlerror());
        return REDISMODULE_ERR;
    }
    int (*on_load)(RedisModuleCtx *, RedisModuleString **, int);
    *(void **)&on_load = dlsym(library, "RedisModule_OnLoad");
    return on_load ? on_load(ctx, NULL, 0) : REDISMODULE_ERR;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (RedisModule_Init(ctx, "ckv", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK || argc != 1)
        return REDISMODULE_ERR;
    if (load_ckv(ctx, RedisModule_StringPtrLen(argv[0], NULL)) != REDISMODULE_OK)
        return REDISMODULE_ERR;

    written = RedisModule_CreateDict(NULL);
    for (int i = 0; i < N_COMMANDS; i++)
        renamed[i] = RedisModule_CreateStringPrintf(NULL, "c%s", commands[i].name);
    return RedisModule_RegisterCommandFilter(ctx, on_command, REDISMODULE_CMDFILTER_NOSELF)
               ? REDISMODULE_OK
               : REDISMODULE_ERR;
}
