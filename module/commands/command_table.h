/* command_table.h: what there is to say about each command. */
#ifndef CKV_COMMAND_TABLE_H
#define CKV_COMMAND_TABLE_H

#include "commands/commands.h"

#include <stdint.h>

/* Where the keys of a command are. */
typedef enum command_keys {
    KEYS_NONE,
    KEYS_ONE,     /* the first argument */
    KEYS_SECOND,  /* the second argument, if there is one */
    KEYS_THIRD,   /* the third, if there is one */
    KEYS_ALL,     /* every argument */
    KEYS_PAIRS,   /* every other argument */
    KEYS_COUNTED, /* every other argument behind their number */
    KEYS_STORE,   /* the first argument, and the one behind the word STORE, which is written */
} command_keys;

typedef struct command_entry {
    const char *name;
    command *function;
    const char *flags;      /* as RM_CreateCommand has them */
    const char *categories; /* of ACL, besides those that follow from the flags */
    command_keys keys;
    uint64_t key_flags; /* REDISMODULE_CMD_KEY_* */
    const char *syntax; /* of the arguments, see syntax.h; NULL: any, and it is not documented */
    const char *summary, *complexity;
    const char *tips; /* for clients and proxies, may be NULL */
} command_entry;

/* An entry without a name is the end. */
extern const command_entry command_table[];

#endif
