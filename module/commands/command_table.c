/* command_table.c: the commands, as COMMAND DOCS shows them. docs/commands.md says the same at more
 * length; a test compares the two. */
#include "commands/command_table.h"

#include "keyspace/replicate.h"

#include <stddef.h>

/* What a command does with its keys; the server derives from it which permissions it takes. */
#define READS     (REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS)
#define LOOKS     REDISMODULE_CMD_KEY_RO
#define WRITES    (REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_UPDATE)
#define CREATES   (REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_INSERT)
#define UPDATES   (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE)
#define EXTENDS   (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_INSERT)
#define EXCHANGES (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE)
#define TAKES     (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_DELETE)
#define DELETES   (REDISMODULE_CMD_KEY_RM | REDISMODULE_CMD_KEY_DELETE)

#define EXPIRATION                                                                                 \
    "EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds"
#define COMPARISON "IFEQ ifeq-value | IFNE ifne-value"
#define CONDITIONS "[condition: NX | XX | GT | LT]"

#define PER_KEY    "O(N) where N is the number of records"
#define PER_BYTE   "O(N) where N is the length of the value"
#define ALL_SHARDS "request_policy:all_shards"

const command_entry command_table[] = {
    /* ---- values ---- */
    {"cset", cmd_cset, "write deny-oom fast", "string", KEYS_ONE, WRITES,
     "key value [condition: NX | XX | " COMPARISON "] [GET] [expiration: " EXPIRATION " | KEEPTTL]",
     "Sets the value of a record, whatever it was, and its expiry.", "O(1)", NULL},
    {"cget", cmd_cget, "readonly fast", "string", KEYS_ONE, READS, "key",
     "Returns the value of a record.", "O(1)", NULL},
    {"cgetdel", cmd_cgetdel, "write fast", "string", KEYS_ONE, TAKES, "key",
     "Returns the value of a record and deletes it.", "O(1)", NULL},
    {"cgetex", cmd_cgetex, "write fast", "string", KEYS_ONE, EXCHANGES,
     "key [expiration: " EXPIRATION " | PERSIST]",
     "Returns the value of a record and sets or removes its expiry.", "O(1)", NULL},
    {"cgetset", cmd_cgetset, "write deny-oom fast", "string", KEYS_ONE, EXCHANGES, "key value",
     "Sets the value of a record and returns the one before.", "O(1)", NULL},
    {"csetnx", cmd_csetnx, "write deny-oom fast", "string", KEYS_ONE, CREATES, "key value",
     "Sets the value of a record that does not exist.", "O(1)", NULL},
    {"csetex", cmd_csetex, "write deny-oom", "string", KEYS_ONE, WRITES, "key seconds value",
     "Sets the value and the expiry of a record, in seconds.", "O(1)", NULL},
    {"cpsetex", cmd_cpsetex, "write deny-oom", "string", KEYS_ONE, WRITES, "key milliseconds value",
     "Sets the value and the expiry of a record, in milliseconds.", "O(1)", NULL},
    {"cmset", cmd_cmset, "write deny-oom", "string", KEYS_PAIRS, WRITES,
     "key value [key value ...]", "Sets the values of several records.", PER_KEY,
     "request_policy:multi_shard response_policy:all_succeeded"},
    {"cmsetnx", cmd_cmsetnx, "write deny-oom", "string", KEYS_PAIRS, CREATES,
     "key value [key value ...]", "Sets the values of several records if none of them exists.",
     PER_KEY, NULL},
    {"cmsetex", cmd_cmsetex, "write deny-oom", "string", KEYS_COUNTED, WRITES,
     "numkeys key value [key value ...] [condition: NX | XX] [expiration: " EXPIRATION
     " | KEEPTTL]",
     "Sets the values of several records and one expiry for all of them.", PER_KEY, NULL},
    {"cmget", cmd_cmget, "readonly fast", "string", KEYS_ALL, READS, "key [key ...]",
     "Returns the values of several records.", PER_KEY, "request_policy:multi_shard"},
    {"cstrlen", cmd_cstrlen, "readonly fast", "string", KEYS_ONE, LOOKS, "key",
     "Returns the length of a value.", "O(1)", NULL},
    {"cappend", cmd_cappend, "write deny-oom fast", "string", KEYS_ONE, EXTENDS, "key value",
     "Appends to a value.", "O(N) where N is the new length of the value", NULL},
    {"cgetrange", cmd_cgetrange, "readonly", "string", KEYS_ONE, READS, "key start end",
     "Returns a part of a value.", PER_BYTE, NULL},
    {"csetrange", cmd_csetrange, "write deny-oom", "string", KEYS_ONE, UPDATES, "key offset value",
     "Writes over a part of a value.", "O(N) where N is the new length of the value", NULL},
    {"cincr", cmd_cincr, "write deny-oom fast", "string", KEYS_ONE, EXCHANGES, "key",
     "Adds one to a number.", "O(1)", NULL},
    {"cdecr", cmd_cdecr, "write deny-oom fast", "string", KEYS_ONE, EXCHANGES, "key",
     "Takes one from a number.", "O(1)", NULL},
    {"cincrby", cmd_cincrby, "write deny-oom fast", "string", KEYS_ONE, EXCHANGES, "key increment",
     "Adds to a number.", "O(1)", NULL},
    {"cdecrby", cmd_cdecrby, "write deny-oom fast", "string", KEYS_ONE, EXCHANGES, "key decrement",
     "Takes from a number.", "O(1)", NULL},
    {"cincrbyfloat", cmd_cincrbyfloat, "write deny-oom fast", "string", KEYS_ONE, EXCHANGES,
     "key increment:double", "Adds to a floating-point number.", "O(1)", NULL},

    /* ---- records ---- */
    {"cdel", cmd_cdel, "write", "keyspace", KEYS_ALL, DELETES, "key [key ...]", "Deletes records.",
     PER_KEY, "request_policy:multi_shard response_policy:agg_sum"},
    {"cunlink", cmd_cdel, "write fast", "keyspace", KEYS_ALL, DELETES, "key [key ...]",
     "Deletes records; the same as CDEL.", PER_KEY,
     "request_policy:multi_shard response_policy:agg_sum"},
    {"cdelex", cmd_cdelex, "write fast", "string", KEYS_ONE, TAKES,
     "key [condition: " COMPARISON "]", "Deletes a record if its value is what is expected.",
     "O(1)", NULL},
    {"cexists", cmd_cexists, "readonly fast", "keyspace", KEYS_ALL, LOOKS, "key [key ...]",
     "Counts how many of the records exist.", PER_KEY,
     "request_policy:multi_shard response_policy:agg_sum"},
    {"ctouch", cmd_ctouch, "readonly fast", "keyspace", KEYS_ALL, LOOKS, "key [key ...]",
     "Counts how many of the records exist, as used just now.", PER_KEY,
     "request_policy:multi_shard response_policy:agg_sum"},

    /* ---- expiry ---- */
    {"cttl", cmd_cttl, "readonly fast", "keyspace", KEYS_ONE, READS, "key",
     "Returns the seconds until a record expires.", "O(1)", "nondeterministic_output"},
    {"cpttl", cmd_cpttl, "readonly fast", "keyspace", KEYS_ONE, READS, "key",
     "Returns the milliseconds until a record expires.", "O(1)", "nondeterministic_output"},
    {"cexpiretime", cmd_cexpiretime, "readonly fast", "keyspace", KEYS_ONE, READS, "key",
     "Returns the time at which a record expires, in seconds since 1970.", "O(1)", NULL},
    {"cpexpiretime", cmd_cpexpiretime, "readonly fast", "keyspace", KEYS_ONE, READS, "key",
     "Returns the time at which a record expires, in milliseconds since 1970.", "O(1)", NULL},
    {"cexpire", cmd_cexpire, "write fast", "keyspace", KEYS_ONE, UPDATES, "key seconds " CONDITIONS,
     "Sets the expiry of a record in seconds.", "O(1)", NULL},
    {"cpexpire", cmd_cpexpire, "write fast", "keyspace", KEYS_ONE, UPDATES,
     "key milliseconds " CONDITIONS, "Sets the expiry of a record in milliseconds.", "O(1)", NULL},
    {"cexpireat", cmd_cexpireat, "write fast", "keyspace", KEYS_ONE, UPDATES,
     "key unix-time-seconds " CONDITIONS,
     "Sets the expiry of a record to a time in seconds since 1970.", "O(1)", NULL},
    {"cpexpireat", cmd_cpexpireat, "write fast", "keyspace", KEYS_ONE, UPDATES,
     "key unix-time-milliseconds " CONDITIONS,
     "Sets the expiry of a record to a time in milliseconds since 1970.", "O(1)", NULL},
    {"cpersist", cmd_cpersist, "write fast", "keyspace", KEYS_ONE, UPDATES, "key",
     "Removes the expiry of a record.", "O(1)", NULL},

    /* ---- all of them; these take permission for all keys, see acl.h ---- */
    {"cscan", cmd_cscan, "readonly", "keyspace", KEYS_NONE, 0,
     "cursor [MATCH pattern] [COUNT count] [TYPE type] [expiry: EXPIRES | NOEXPIRES]",
     "Iterates over the keys of the selected database.",
     "O(1) for every call, O(N) for a whole iteration where N is the number of records",
     "nondeterministic_output request_policy:special response_policy:special"},
    {"ckeys", cmd_ckeys, "readonly", "keyspace dangerous", KEYS_NONE, 0, "pattern",
     "Returns all keys that match a pattern.",
     "O(N) where N is the number of records in the database",
     ALL_SHARDS " nondeterministic_output_order"},
    {"crandomkey", cmd_crandomkey, "readonly", "keyspace", KEYS_NONE, 0, "",
     "Returns a key of the selected database by chance.", "O(1)",
     ALL_SHARDS " response_policy:special nondeterministic_output"},
    {"cdbsize", cmd_cdbsize, "readonly fast", "keyspace", KEYS_NONE, 0, "",
     "Returns the number of records in the selected database.", "O(1)",
     ALL_SHARDS " response_policy:agg_sum"},
    {"cevict", cmd_cevict, "write no-monitor no-slowlog", "admin dangerous", KEYS_NONE, 0, "",
     "Evicts records for the room that the next command needs.",
     "O(N) where N is the number of records evicted", ALL_SHARDS " response_policy:agg_sum"},
    {"ckv", cmd_ckv, "admin", "admin dangerous", KEYS_NONE, 0,
     "<subcommand: STATS | TRAIN | OPTIMIZE | MOVE | MOVING | HELP> [way: IN | OUT] [prefix]",
     "Shows figures, trains dictionaries, optimizes pages, moves strings.",
     "O(1), of OPTIMIZE O(N) where N is the number of records", NULL},
    {.name = REPLICATE_COUNTED,
     .function = replicate_counted,
     .flags = "no-monitor no-slowlog",
     .categories = "admin dangerous",
     .keys = KEYS_NONE},
    {.name = NULL},
};
