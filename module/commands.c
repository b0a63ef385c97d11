/* commands.c: the table of commands. */
#include "commands.h"

typedef struct entry {
    const char *name;
    command *function;
    const char *flags;
    int first_key, last_key, key_step, arity;
    int key_flags; /* REDISMODULE_CMD_KEY_* of its keys */
    const char *complexity, *summary;
} entry;

#define READ_KEY   (REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS)
#define WRITE_KEY  (REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_UPDATE)
#define UPDATE_KEY (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE)
#define INSERT_KEY (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_INSERT)
#define CHANGE_KEY                                                                                 \
    (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE)
#define DELETE_KEY (REDISMODULE_CMD_KEY_RM | REDISMODULE_CMD_KEY_DELETE)
#define EXISTS_KEY REDISMODULE_CMD_KEY_RO
#define WRITES     "write deny-oom fast"

static const entry table[] = {
    {"cset", cmd_cset, WRITES, 1, 1, 1, -3, CHANGE_KEY, "O(1)",
     "Sets the value of a record, whatever it was, and its expiry."},
    {"cget", cmd_cget, "readonly fast", 1, 1, 1, 2, READ_KEY, "O(1)",
     "Returns the value of a record."},
    {"cmset", cmd_cmset, "write deny-oom", 1, -1, 2, -3, WRITE_KEY,
     "O(N) where N is the number of records to set", "Sets the values of several records."},
    {"cmget", cmd_cmget, "readonly fast", 1, -1, 1, -2, READ_KEY,
     "O(N) where N is the number of records to read", "Returns the values of several records."},
    {"cstrlen", cmd_cstrlen, "readonly fast", 1, 1, 1, 2, READ_KEY, "O(1)",
     "Returns the length of a value."},
    {"cgetdel", cmd_cgetdel, "write fast", 1, 1, 1, 2, CHANGE_KEY, "O(1)",
     "Returns the value of a record and deletes it."},
    {"cgetex", cmd_cgetex, "write fast", 1, 1, 1, -2, CHANGE_KEY, "O(1)",
     "Returns the value of a record and sets or removes its expiry."},
    {"cgetset", cmd_cgetset, WRITES, 1, 1, 1, 3, CHANGE_KEY, "O(1)",
     "Sets the value of a record and returns the one before."},
    {"csetnx", cmd_csetnx, WRITES, 1, 1, 1, 3, WRITE_KEY, "O(1)",
     "Sets the value of a record that does not exist."},
    {"csetex", cmd_csetex, "write deny-oom", 1, 1, 1, 4, WRITE_KEY, "O(1)",
     "Sets the value and the expiry of a record, in seconds."},
    {"cpsetex", cmd_cpsetex, "write deny-oom", 1, 1, 1, 4, WRITE_KEY, "O(1)",
     "Sets the value and the expiry of a record, in milliseconds."},
    {"cappend", cmd_cappend, WRITES, 1, 1, 1, 3, INSERT_KEY, "O(N) where N is the new length",
     "Appends to a value."},
    {"cgetrange", cmd_cgetrange, "readonly", 1, 1, 1, 4, READ_KEY,
     "O(N) where N is the length of the value", "Returns a part of a value."},
    {"csetrange", cmd_csetrange, "write deny-oom", 1, 1, 1, 4, UPDATE_KEY,
     "O(N) where N is the new length", "Writes over a part of a value."},
    {"cincr", cmd_cincr, WRITES, 1, 1, 1, 2, CHANGE_KEY, "O(1)", "Adds one to a number."},
    {"cdecr", cmd_cdecr, WRITES, 1, 1, 1, 2, CHANGE_KEY, "O(1)", "Takes one from a number."},
    {"cincrby", cmd_cincrby, WRITES, 1, 1, 1, 3, CHANGE_KEY, "O(1)", "Adds to a number."},
    {"cdecrby", cmd_cdecrby, WRITES, 1, 1, 1, 3, CHANGE_KEY, "O(1)", "Takes from a number."},
    {"cincrbyfloat", cmd_cincrbyfloat, WRITES, 1, 1, 1, 3, CHANGE_KEY, "O(1)",
     "Adds to a floating-point number."},
    {"cunlink", cmd_cdel, "write fast", 1, -1, 1, -2, DELETE_KEY,
     "O(N) where N is the number of records to delete", "Deletes records; the same as CDEL."},
    {"ctouch", cmd_cexists, "readonly fast", 1, -1, 1, -2, EXISTS_KEY,
     "O(N) where N is the number of records to look for",
     "Counts how many of the records exist; the same as CEXISTS."},
    {"cdel", cmd_cdel, "write", 1, -1, 1, -2, DELETE_KEY,
     "O(N) where N is the number of records to delete", "Deletes records."},
    {"cexists", cmd_cexists, "readonly fast", 1, -1, 1, -2, EXISTS_KEY,
     "O(N) where N is the number of records to look for", "Counts how many of the records exist."},
    {"cdbsize", cmd_cdbsize, "readonly fast", 0, 0, 0, 1, 0, "O(M) where M is the number of maps",
     "Returns the number of records in the selected database."},
    {"cttl", cmd_cttl, "readonly fast", 1, 1, 1, 2, READ_KEY, "O(1)",
     "Returns the seconds until a record expires."},
    {"cpttl", cmd_cpttl, "readonly fast", 1, 1, 1, 2, READ_KEY, "O(1)",
     "Returns the milliseconds until a record expires."},
    {"cexpiretime", cmd_cexpiretime, "readonly fast", 1, 1, 1, 2, READ_KEY, "O(1)",
     "Returns the time at which a record expires, in seconds since 1970."},
    {"cpexpiretime", cmd_cpexpiretime, "readonly fast", 1, 1, 1, 2, READ_KEY, "O(1)",
     "Returns the time at which a record expires, in milliseconds since 1970."},
    {"cexpire", cmd_cexpire, "write fast", 1, 1, 1, -3, UPDATE_KEY, "O(1)",
     "Sets the expiry of a record in seconds."},
    {"cpexpire", cmd_cpexpire, "write fast", 1, 1, 1, -3, UPDATE_KEY, "O(1)",
     "Sets the expiry of a record in milliseconds."},
    {"cexpireat", cmd_cexpireat, "write fast", 1, 1, 1, -3, UPDATE_KEY, "O(1)",
     "Sets the expiry of a record to a time in seconds since 1970."},
    {"cpexpireat", cmd_cpexpireat, "write fast", 1, 1, 1, -3, UPDATE_KEY, "O(1)",
     "Sets the expiry of a record to a time in milliseconds since 1970."},
    {"cpersist", cmd_cpersist, "write fast", 1, 1, 1, 2, UPDATE_KEY, "O(1)",
     "Removes the expiry of a record."},
    {"ckv", cmd_ckv, "readonly", 0, 0, 0, -2, 0, "O(M) where M is the number of maps",
     "Shows figures, trains dictionaries, optimizes pages."},
};

static int describe(RedisModuleCtx *ctx, const entry *e) {
    RedisModuleCommand *c = RedisModule_GetCommand(ctx, e->name);
    RedisModuleCommandKeySpec specs[] = {
        {.flags = (uint64_t)e->key_flags,
         .begin_search_type = REDISMODULE_KSPEC_BS_INDEX,
         .bs.index.pos = e->first_key,
         .find_keys_type = REDISMODULE_KSPEC_FK_RANGE,
         .fk.range = {e->last_key < 0 ? e->last_key : 0, e->key_step, 0}},
        {0},
    };
    RedisModuleCommandInfo info = {
        .version = REDISMODULE_COMMAND_INFO_VERSION,
        .summary = e->summary,
        .complexity = e->complexity,
        .since = "1.0.0",
        .arity = e->arity,
        .key_specs = e->first_key ? specs : NULL,
    };
    return c ? RedisModule_SetCommandInfo(c, &info) : REDISMODULE_ERR;
}

int commands_register(RedisModuleCtx *ctx) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const entry *e = &table[i];
        if (RedisModule_CreateCommand(ctx, e->name, e->function, e->flags, e->first_key,
                                      e->last_key, e->key_step) != REDISMODULE_OK ||
            describe(ctx, e) != REDISMODULE_OK)
            return REDISMODULE_ERR;
    }
    return REDISMODULE_OK;
}
