/* served.c: the commands that are served from ckv. See served.h. */
#include "transparent/served.h"

#include "commands/command_table.h"
#include "commands/register.h"
#include "keyspace/native.h"
#include "server/reply.h"
#include "transparent/permission.h"
#include "transparent/serve_cluster.h"
#include "transparent/serve_debug.h"
#include "transparent/serve_info.h"
#include "transparent/serve_key.h"
#include "transparent/serve_lists.h"
#include "transparent/serve_sort.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_LEN 32

typedef struct served_command {
    const char *name;
    served_keys keys;
    bool writes_strings;            /* where there was none */
    command *function;              /* NULL: that of our command of the name, with a C before it */
    const char *flags, *categories; /* of those with a function */
} served_command;

#define READS_FAST "readonly fast"

static const served_command table[] = {
    {"get", SERVED_FIRST, false, NULL, NULL, NULL},
    {"set", SERVED_FIRST, true, NULL, NULL, NULL},
    {"setnx", SERVED_FIRST, true, NULL, NULL, NULL},
    {"setex", SERVED_FIRST, true, NULL, NULL, NULL},
    {"psetex", SERVED_FIRST, true, NULL, NULL, NULL},
    {"getset", SERVED_FIRST, true, NULL, NULL, NULL},
    {"getdel", SERVED_FIRST, false, NULL, NULL, NULL},
    {"getex", SERVED_FIRST, false, NULL, NULL, NULL},
    {"strlen", SERVED_FIRST, false, NULL, NULL, NULL},
    {"append", SERVED_FIRST, true, NULL, NULL, NULL},
    {"getrange", SERVED_FIRST, false, NULL, NULL, NULL},
    {"substr", SERVED_FIRST, false, cmd_cgetrange, "readonly", "string"},
    {"setrange", SERVED_FIRST, true, NULL, NULL, NULL},
    {"incr", SERVED_FIRST, true, NULL, NULL, NULL},
    {"decr", SERVED_FIRST, true, NULL, NULL, NULL},
    {"incrby", SERVED_FIRST, true, NULL, NULL, NULL},
    {"decrby", SERVED_FIRST, true, NULL, NULL, NULL},
    {"incrbyfloat", SERVED_FIRST, true, NULL, NULL, NULL},
    {"mget", SERVED_ANY, false, NULL, NULL, NULL},
    {"mset", SERVED_PAIRS, true, NULL, NULL, NULL},
    {"msetnx", SERVED_PAIRS, true, NULL, NULL, NULL},
    {"msetex", SERVED_COUNTED, true, NULL, NULL, NULL},
    {"del", SERVED_ANY, false, NULL, NULL, NULL},
    {"unlink", SERVED_ANY, false, NULL, NULL, NULL},
    {"exists", SERVED_ANY, false, NULL, NULL, NULL},
    {"touch", SERVED_ANY, false, NULL, NULL, NULL},
    {"ttl", SERVED_FIRST, false, NULL, NULL, NULL},
    {"pttl", SERVED_FIRST, false, NULL, NULL, NULL},
    {"expiretime", SERVED_FIRST, false, NULL, NULL, NULL},
    {"pexpiretime", SERVED_FIRST, false, NULL, NULL, NULL},
    {"expire", SERVED_FIRST, false, NULL, NULL, NULL},
    {"pexpire", SERVED_FIRST, false, NULL, NULL, NULL},
    {"expireat", SERVED_FIRST, false, NULL, NULL, NULL},
    {"pexpireat", SERVED_FIRST, false, NULL, NULL, NULL},
    {"persist", SERVED_FIRST, false, NULL, NULL, NULL},
    {"dbsize", SERVED_KEYLESS, false, NULL, NULL, NULL},
    {"type", SERVED_FIRST, false, serve_type, READS_FAST, "keyspace"},
    {"dump", SERVED_FIRST, false, serve_first, "readonly", "keyspace"},
    {"object", SERVED_SECOND, false, serve_second, "readonly", "keyspace"},
    {"memory", SERVED_SECOND, false, serve_second, "readonly", "keyspace"},
    {"sort", SERVED_FIRST, false, serve_sort, "write deny-oom", "set sortedset list dangerous"},
    {"sort_ro", SERVED_FIRST, false, serve_sort, "readonly", "set sortedset list dangerous"},
    {"scan", SERVED_KEYLESS, false, serve_scan, "readonly", "keyspace"},
    {"keys", SERVED_KEYLESS, false, serve_keys, "readonly", "keyspace dangerous"},
    {"clusterscan", SERVED_CURSOR, false, serve_cluster_scan, "readonly", "keyspace"},
    {"randomkey", SERVED_KEYLESS, false, serve_randomkey, "readonly", "keyspace"},
    {"debug", SERVED_FIGURES, false, serve_debug, "admin", "admin dangerous"},
    {"cluster", SERVED_FIGURES, false, serve_cluster, "allow-stale", "slow"},
    {"info", SERVED_FIGURES, false, serve_info, "allow-loading allow-stale", "dangerous"},
};

#define COUNT ((int)(sizeof table / sizeof *table))
_Static_assert(COUNT <= PERMISSION_NAMES_MAX, "permission.h has no room for so many");

static RedisModuleString *by_rules[COUNT], *asking[COUNT];

/* ---- registration ---------------------------------------------------------------------------- */

static const command_entry *our_command(const char *name) {
    for (const command_entry *e = command_table; e->name; e++)
        if (!strcmp(e->name + 1, name)) return e;
    return NULL;
}

static bool is_list(const served_command *s) {
    return s->keys == SERVED_KEYLESS || s->keys == SERVED_CURSOR;
}

/* The keys of commands that only exist here. */
static command_keys keys_of(served_keys keys) {
    if (keys == SERVED_FIRST || keys == SERVED_CURSOR) return KEYS_ONE;
    return keys == SERVED_SECOND ? KEYS_SECOND : KEYS_NONE;
}

static command_entry entry_of(const served_command *s) {
    if (!s->function) return *our_command(s->name);
    return (command_entry){.function = s->function,
                           .flags = s->flags,
                           .categories = s->categories,
                           .keys = keys_of(s->keys),
                           .key_flags = REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS};
}

/* What runs for every ckv+ command, which only the filter can have sent: the name is the very one
 * that it puts there. Whoever types it has not been asked who he is. */
static int ask_and_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    /* Of no other the server wants to know where its keys are, and no command is running then. */
    if (RedisModule_IsKeysPositionRequest(ctx)) return cmd_cmsetex(ctx, argv, argc);
    const char *name = native_name(ctx);
    int served = served_find(name);
    if (argv[0] != asking[served])
        return reply_error(ctx, "ERR unknown command '" CKV_ASKING_PREFIX "%s'", name);
    if (!permission_ask(ctx, served, argv, argc)) return REDISMODULE_OK;
    return entry_of(&table[served]).function(ctx, argv, argc);
}

/* What runs for the ckv. commands that list: the server has checked their own name, but whom it
 * can't ask it sends here as well. */
static int list_and_ask(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    const char *name = native_name(ctx);
    int served = served_find(name);
    if (!permission_of_all(served) && !permission_ask(ctx, served, argv, argc))
        return REDISMODULE_OK;
    return entry_of(&table[served]).function(ctx, argv, argc);
}

/* One of the two; without a syntax, so that the server lets any number of arguments pass: the
 * filter has counted them, and the error would name a command that nobody has sent. */
static RedisModuleString *register_one(RedisModuleCtx *ctx, const served_command *s,
                                       const char *prefix) {
    char name[NAME_MAX_LEN], flags[96];
    command_entry e = entry_of(s);
    snprintf(name, sizeof name, "%s%s", prefix, s->name);
    bool asks = !strcmp(prefix, CKV_ASKING_PREFIX);
    snprintf(flags, sizeof flags, "%s%s", e.flags, asks ? " no-auth" : "");
    e.name = name;
    e.flags = flags;
    e.syntax = NULL;
    if (asks || is_list(s)) e.function = asks ? ask_and_run : list_and_ask;
    /* The keys are asked about together with the command, by the rules of the server's own. */
    if ((asks && e.keys != KEYS_COUNTED) || s->keys == SERVED_CURSOR)
        e.key_flags |= REDISMODULE_CMD_KEY_NOT_KEY;
    if (register_command(ctx, &e) != REDISMODULE_OK) return NULL;
    return RedisModule_CreateString(NULL, name, strlen(name));
}

/* What an AOF and replicas are told of moves. */
static const command_entry own_commands[] = {
    {"cmoveout", serve_move_out, "write no-monitor no-slowlog", "admin dangerous", KEYS_ONE,
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE, "key",
     "Makes a record a string of the server's own.", "O(N) where N is the length of the value",
     NULL},
    {"cmovein", serve_move_in, "write no-monitor no-slowlog", "admin dangerous", KEYS_ONE,
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE, "key [SERVED]",
     "Makes a string of the server's own a record.", "O(N) where N is the length of the value",
     NULL},
    {"cplain", serve_plain, "write no-monitor no-slowlog", "admin dangerous", KEYS_NONE, 0,
     "step command argument [argument ...]",
     "Runs a command of an append-only file on strings of the server's own.",
     "O(N) where N is the number of its keys, and that of the command", NULL},
    {"cprefixes", serve_prefixes, "write no-monitor no-slowlog", "admin dangerous", KEYS_NONE, 0,
     "prefixes", "Tells the prefixes of what follows in an append-only file.",
     "O(N) where N is the number of prefixes", NULL},
    {.name = SERVE_MOVE_OUT_UNASKED,
     .function = serve_move_out_unasked,
     .flags = "write no-monitor no-slowlog",
     .categories = "admin dangerous",
     .keys = KEYS_NONE},
    {.name = NULL},
};

int served_register(RedisModuleCtx *ctx) {
    static const char *names[COUNT];
    for (int i = 0; i < COUNT; i++) names[i] = table[i].name;
    permission_start(names, COUNT);
    for (int i = 0; i < COUNT; i++) {
        by_rules[i] = register_one(ctx, &table[i], CKV_SERVED_PREFIX);
        asking[i] = register_one(ctx, &table[i], CKV_ASKING_PREFIX);
        if (!by_rules[i] || !asking[i]) return REDISMODULE_ERR;
    }
    for (const command_entry *e = own_commands; e->name; e++)
        if (register_command(ctx, e) != REDISMODULE_OK) return REDISMODULE_ERR;
    return REDISMODULE_OK;
}

/* ---- looking up ------------------------------------------------------------------------------ */

uint8_t served_find(const char *name) {
    for (int i = 0; i < COUNT; i++)
        if (!strcmp(table[i].name, name)) return (uint8_t)i;
    for (const command_entry *e = own_commands; e->name; e++)
        if (!strcmp(e->name, name)) return CATALOGUE_OURS;
    return CATALOGUE_NOT_SERVED;
}

served_keys served_keys_of(int served) {
    return table[served].keys;
}

bool served_lists(int served) {
    return is_list(&table[served]);
}

bool served_writes_strings(int served) {
    return table[served].writes_strings;
}

RedisModuleString *served_by_rules(int served) {
    return by_rules[served];
}

RedisModuleString *served_asking(int served) {
    return asking[served];
}
