/* served.c: the commands that are served from ckv. See served.h. */
#include "transparent/served.h"

#include "commands/command_table.h"
#include "commands/register.h"
#include "keyspace/move_call.h"
#include "keyspace/places.h"
#include "server/reply.h"
#include "server/version.h"
#include "transparent/permission.h"
#include "transparent/serve_client.h"
#include "transparent/serve_cluster.h"
#include "transparent/serve_debug.h"
#include "transparent/serve_info.h"
#include "transparent/serve_key.h"
#include "transparent/serve_lists.h"
#include "transparent/serve_moves.h"
#include "transparent/serve_run.h"
#include "transparent/serve_sort.h"
#include "transparent/user_rules.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_LEN 32

typedef struct served_command {
    const char *name;
    served_keys keys;
    bool writes_strings;            /* where there was none */
    command *function;              /* NULL: that of our command of the name, with a C before it */
    const char *flags, *categories; /* of those with a function */
    uint64_t key_flags;
} served_command;

#define SERVER_ADMIN "admin deny-script allow-loading allow-stale"
#define READS_FAST   "readonly fast"
#define READS_KEY    REDISMODULE_CMD_KEY_RO /* nothing of what it holds */
#define READS_VALUE  (REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS)

/* As served_command has them. */
#define SERVED_COMMANDS(X)                                                                         \
    X(get, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                               \
    X(set, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                                \
    X(setnx, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                              \
    X(setex, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                              \
    X(psetex, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                             \
    X(getset, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                             \
    X(getdel, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                            \
    X(getex, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                             \
    X(strlen, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                            \
    X(append, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                             \
    X(getrange, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                          \
    X(substr, SERVED_FIRST, false, cmd_cgetrange, "readonly", "string", READS_VALUE)               \
    X(setrange, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                           \
    X(incr, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                               \
    X(decr, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                               \
    X(incrby, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                             \
    X(decrby, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                             \
    X(incrbyfloat, SERVED_FIRST, true, NULL, NULL, NULL, 0)                                        \
    X(mget, SERVED_ANY, false, NULL, NULL, NULL, 0)                                                \
    X(mset, SERVED_PAIRS, true, NULL, NULL, NULL, 0)                                               \
    X(msetnx, SERVED_PAIRS, true, NULL, NULL, NULL, 0)                                             \
    X(msetex, SERVED_COUNTED, true, NULL, NULL, NULL, 0)                                           \
    X(del, SERVED_ANY, false, NULL, NULL, NULL, 0)                                                 \
    X(unlink, SERVED_ANY, false, NULL, NULL, NULL, 0)                                              \
    X(exists, SERVED_ANY, false, NULL, NULL, NULL, 0)                                              \
    X(touch, SERVED_ANY, false, NULL, NULL, NULL, 0)                                               \
    X(ttl, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                               \
    X(pttl, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                              \
    X(expiretime, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                        \
    X(pexpiretime, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                       \
    X(expire, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                            \
    X(pexpire, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                           \
    X(expireat, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                          \
    X(pexpireat, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                         \
    X(persist, SERVED_FIRST, false, NULL, NULL, NULL, 0)                                           \
    X(dbsize, SERVED_KEYLESS, false, NULL, NULL, NULL, 0)                                          \
    X(type, SERVED_FIRST, false, serve_type, READS_FAST, "keyspace", READS_KEY)                    \
    X(dump, SERVED_FIRST, false, serve_dump, "readonly", "keyspace", READS_VALUE)                  \
    X(object, SERVED_SECOND, false, serve_object, "readonly", "keyspace", READS_KEY)               \
    X(memory, SERVED_SECOND, false, serve_object, "readonly", "slow", READS_KEY)                   \
    X(sort, SERVED_STORE, false, serve_sort, "write deny-oom", "set sortedset list dangerous",     \
      READS_VALUE)                                                                                 \
    X(sort_ro, SERVED_FIRST, false, serve_sort, "readonly", "set sortedset list dangerous",        \
      READS_VALUE)                                                                                 \
    X(scan, SERVED_KEYLESS, false, serve_scan, "readonly", "keyspace", 0)                          \
    X(keys, SERVED_KEYLESS, false, serve_keys, "readonly", "keyspace dangerous", 0)                \
    X(clusterscan, SERVED_CURSOR, false, serve_cluster_scan, "readonly", "keyspace", READS_VALUE)  \
    X(randomkey, SERVED_KEYLESS, false, serve_randomkey, "readonly", "keyspace", 0)                \
    X(debug, SERVED_FIGURES, false, serve_debug, SERVER_ADMIN, "admin dangerous", 0)               \
    X(config, SERVED_FIGURES, false, serve_config, SERVER_ADMIN, "admin dangerous", 0)             \
    X(client, SERVED_FIGURES, false, serve_client, SERVER_ADMIN, "admin dangerous connection", 0)  \
    X(cluster, SERVED_FIGURES, false, serve_cluster, "allow-stale", "slow", 0)                     \
    X(info, SERVED_FIGURES, false, serve_info, "allow-loading allow-stale", "dangerous", 0)

#define NUMBER(name, ...) SERVE_##name,
enum { SERVED_COMMANDS(NUMBER) COUNT };
_Static_assert(COUNT <= USER_RULES_NAMES_MAX, "user_rules.h has no room for so many");

#define ROW(name, ...) [SERVE_##name] = {#name, __VA_ARGS__},
static const served_command table[] = {SERVED_COMMANDS(ROW)};

/* The names that the filter puts in place of the server's. */
static RedisModuleString *by_rules[COUNT], *asking[COUNT];

static command *functions[COUNT]; /* what serves it */

#define MOVING_NAME CKV_ASKING_PREFIX "moving"
static RedisModuleString *moving;

/* ---- running --------------------------------------------------------------------------------- */

/* Of one with counted keys the server wants to know where they are, and no command is running then.
 */
static bool asks_for_keys(RedisModuleCtx *ctx, int served) {
    return table[served].keys == SERVED_COUNTED && RedisModule_IsKeysPositionRequest(ctx);
}

/* Only the filter can send one: the name is the very one that it puts there. Whoever types it has
 * not been asked who he is, nor what he may. Of a ckv. command the server has checked that name,
 * and the filter that its rules are those of the server's own. They may have changed since it was
 * queued, or held back; and the commands that list are sent here also for whom the filter can't
 * ask. */
static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int served, bool asks) {
    if (asks_for_keys(ctx, served)) return functions[served](ctx, argv, argc);
    if (argv[0] != (asks ? asking : by_rules)[served]) return reply_unknown_command(ctx);
    bool may =
        (!asks && permission_of_all(served)) || permission_ask(ctx, served, argv, argc, asks);
    return may ? functions[served](ctx, argv, argc) : REDISMODULE_OK;
}

/* The server does not tell which of its commands has been called. */
#define RUN(name, ...)                                                                             \
    static int by_rules_##name(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {          \
        return run(ctx, argv, argc, SERVE_##name, false);                                          \
    }                                                                                              \
    static int asking_##name(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {            \
        return run(ctx, argv, argc, SERVE_##name, true);                                           \
    }
SERVED_COMMANDS(RUN)

#define ENTRIES(name, ...) [SERVE_##name] = {by_rules_##name, asking_##name},
static command *const entries[COUNT][2] = {SERVED_COMMANDS(ENTRIES)};

/* ---- registration ---------------------------------------------------------------------------- */

static const command_entry *our_command(const char *name) {
    for (const command_entry *e = command_table; e->name; e++)
        if (!strcmp(e->name + 1, name)) return e;
    return NULL;
}

/* The keys of commands that only exist here. */
static command_keys keys_of(served_keys keys) {
    if (keys == SERVED_FIRST || keys == SERVED_CURSOR) return KEYS_ONE;
    if (keys == SERVED_STORE) return KEYS_STORE;
    return keys == SERVED_SECOND ? KEYS_SECOND : KEYS_NONE;
}

static command_entry entry_of(const served_command *s) {
    if (!s->function) return *our_command(s->name);
    return (command_entry){.function = s->function,
                           .flags = s->flags,
                           .categories = s->categories,
                           .keys = keys_of(s->keys),
                           .key_flags = s->key_flags};
}

/* Of a command that asks: its keys are asked about together with it, by the rules of the server's
 * own, or who may not run it would be told that he may not have the key. But in a cluster newer
 * servers look by them for the node that has them. */
static bool hides_keys(void) {
    return !places_are_slots() || !version_is_redis(REDIS_8_2);
}

/* One of the two; without a syntax, so that the server lets any number of arguments pass: the
 * filter has counted them, and the error would name a command that nobody has sent. */
static RedisModuleString *register_one(RedisModuleCtx *ctx, int served, bool asks) {
    const served_command *s = &table[served];
    char name[NAME_MAX_LEN], flags[96];
    command_entry e = entry_of(s);
    functions[served] = e.function;
    snprintf(name, sizeof name, "%s%s", asks ? CKV_ASKING_PREFIX : CKV_SERVED_PREFIX, s->name);
    snprintf(flags, sizeof flags, "%s%s", e.flags, asks ? " no-auth" : "");
    e.name = name;
    e.flags = flags;
    e.syntax = NULL;
    e.function = entries[served][asks];
    /* Counted keys are there or not: the server would check them whatever they are. */
    if (asks && e.keys == KEYS_COUNTED && !places_are_slots()) e.keys = KEYS_NONE;
    if ((asks && e.keys != KEYS_COUNTED && hides_keys()) || s->keys == SERVED_CURSOR)
        e.key_flags |= REDISMODULE_CMD_KEY_NOT_KEY;
    if (register_command(ctx, &e) != REDISMODULE_OK) return NULL;
    return RedisModule_CreateString(NULL, name, strlen(name));
}

static int reply_moving(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argc;
    return argv[0] == moving ? RedisModule_ReplyWithError(ctx, ERROR_MOVING)
                             : reply_unknown_command(ctx);
}

/* What an AOF and replicas are told of moves. Those that are for an AOF alone have a key of what
 * was served: what a module tells while slots leave, and has none, Valkey 9 may take for one of
 * keys in several slots, and gives up (its flags of such a command are not set before they are
 * looked at).
 */
static const command_entry own_commands[] = {
    {"cmoveout", serve_move_out, "write no-monitor no-slowlog", "admin dangerous", KEYS_ONE,
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE, "key",
     "Makes a record a string of the server's own.", "O(N) where N is the length of the value",
     NULL},
    {"cmovein", serve_move_in, "write no-monitor no-slowlog", "admin dangerous", KEYS_ONE,
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE, "key [SERVED]",
     "Makes a string of the server's own a record.", "O(N) where N is the length of the value",
     NULL},
    {"cplain", serve_plain, "write no-monitor no-slowlog", "admin dangerous", KEYS_THIRD,
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE, "step command key [arguments]",
     "Runs a command of an append-only file on strings of the server's own.",
     "O(N) where N is the number of its keys, and that of the command", NULL},
    {"cprefixes", serve_prefixes, "write no-monitor no-slowlog", "admin dangerous", KEYS_SECOND,
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE, "prefixes [key]",
     "Tells the prefixes of what follows in an append-only file.",
     "O(N) where N is the number of prefixes", NULL},
    {.name = MOVE_CALL_OUT,
     .function = serve_move_out_unasked,
     .flags = "write no-monitor no-slowlog",
     .categories = "admin dangerous",
     .keys = KEYS_NONE},
    {.name = MOVE_CALL_BACK,
     .function = serve_move_back_unasked,
     .flags = "write no-monitor no-slowlog",
     .categories = "admin dangerous",
     .keys = KEYS_NONE},
    {.name = MOVING_NAME,
     .function = reply_moving,
     .flags = "readonly fast no-auth no-monitor no-slowlog",
     .categories = "keyspace",
     .keys = KEYS_ONE,
     .key_flags = REDISMODULE_CMD_KEY_RO},
    {.name = SERVE_RUN_NAME,
     .function = serve_run,
     .flags = "write no-auth no-monitor no-slowlog",
     .categories = "keyspace",
     .keys = KEYS_ONE,
     .key_flags = REDISMODULE_CMD_KEY_RW},
    {.name = SERVE_RUN_RO_NAME,
     .function = serve_run,
     .flags = "readonly no-auth no-monitor no-slowlog",
     .categories = "keyspace",
     .keys = KEYS_ONE,
     .key_flags = REDISMODULE_CMD_KEY_RO},
    {.name = NULL},
};

int served_register(RedisModuleCtx *ctx) {
    static const char *names[COUNT];
    for (int i = 0; i < COUNT; i++) names[i] = table[i].name;
    user_rules_start(names, COUNT);
    moving = RedisModule_CreateString(NULL, MOVING_NAME, strlen(MOVING_NAME));
    serve_run_start();
    for (int i = 0; i < COUNT; i++) {
        by_rules[i] = register_one(ctx, i, false);
        asking[i] = register_one(ctx, i, true);
        if (!by_rules[i] || !asking[i]) return REDISMODULE_ERR;
    }
    for (const command_entry *e = own_commands; e->name; e++)
        if (register_command(ctx, e) != REDISMODULE_OK) return REDISMODULE_ERR;
    return REDISMODULE_OK;
}

void served_give_back(void) {
    if (!moving) return;
    RedisModule_FreeString(NULL, moving);
    serve_run_give_back();
    for (int i = 0; i < COUNT; i++) {
        if (by_rules[i]) RedisModule_FreeString(NULL, by_rules[i]);
        if (asking[i]) RedisModule_FreeString(NULL, asking[i]);
    }
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
    return table[served].keys == SERVED_KEYLESS || table[served].keys == SERVED_CURSOR;
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

RedisModuleString *served_moving(void) {
    return moving;
}
