/* evict_commands.c: see evict_commands.h. */
#include "background/evict_commands.h"

#include "keyspace/queued.h"
#include "server/reply.h"

/* Clients that have queued a CONFIG REWRITE: that many of the latest are known. */
#define REWRITERS 4

static uint64_t rewriters[REWRITERS];
static unsigned rewriter; /* the latest */

static RedisModuleString *argument(RedisModuleCommandFilterCtx *command, int i) {
    return (RedisModuleString *)RedisModule_CommandFilterArgGet(command, i);
}

/* Whether a transaction is to be carried out in which the file of settings is written. */
static bool exec_rewrites(RedisModuleString *name, uint64_t client) {
    bool execs = arg_is(name, "exec"), found = false;
    if (!execs && !arg_is(name, "discard") && !arg_is(name, "reset")) return false;
    for (unsigned i = 0; i < REWRITERS; i++) {
        if (rewriters[i] != client) continue;
        rewriters[i] = 0;
        found = execs;
    }
    return found;
}

bool evict_rewrites_settings(RedisModuleCommandFilterCtx *command) {
    RedisModuleString *name = argument(command, 0);
    uint64_t client = RedisModule_CommandFilterGetClientId(command);
    if (exec_rewrites(name, client)) return true;
    if (!arg_is(name, "config") || RedisModule_CommandFilterArgsCount(command) != 2 ||
        !arg_is(argument(command, 1), "rewrite"))
        return false;
    if (!queued_in_transaction(client)) return true;
    rewriters[rewriter++ % REWRITERS] = client;
    return false;
}

static bool reads_and_waits(RedisModuleCommandFilterCtx *command) {
    int n = RedisModule_CommandFilterArgsCount(command);
    for (int i = 1; i < n && !arg_is(argument(command, i), "streams"); i++)
        if (arg_is(argument(command, i), "block")) return true;
    return false;
}

bool evict_may_block(RedisModuleCommandFilterCtx *command) {
    static const char *const names[] = {"blpop",    "brpop",    "blmove", "brpoplpush", "blmpop",
                                        "bzpopmin", "bzpopmax", "bzmpop", "wait",       "waitaof"};
    RedisModuleString *name = argument(command, 0);
    char first = (char)(*RedisModule_StringPtrLen(name, NULL) | 0x20);
    if (first != 'b' && first != 'w' && first != 'x') return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (arg_is(name, names[i])) return true;
    return (arg_is(name, "xread") || arg_is(name, "xreadgroup")) && reads_and_waits(command);
}
