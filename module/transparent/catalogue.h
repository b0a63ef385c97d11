/*
 * catalogue.h: the server's commands, and where their keys are, as COMMAND tells: what the filter
 * asks for every command that passes.
 */
#ifndef CKV_CATALOGUE_H
#define CKV_CATALOGUE_H

#include "ckv.h"

typedef enum catalogue_kind {
    COMMAND_KEYLESS, /* nothing to do */
    COMMAND_SERVED,  /* served from ckv: transparent/served.h */
    COMMAND_RANGE,   /* the server's alone, with keys from `first` to `last` by `step` */
    COMMAND_ASK,     /* the same; the server must be asked where the keys are */
    COMMAND_SORT,    /* the same, and keys that are made of patterns */
    COMMAND_SCRIPT,  /* its keys are read by commands of its own; in a cluster the server looks for
                        them before */
    COMMAND_WATCH,
    COMMAND_UNWATCH,
    COMMAND_DEBUG, /* any argument may be a key */
    COMMAND_CLIENT,
    COMMAND_CLUSTER,
    COMMAND_MULTI,
    COMMAND_EXEC,
    COMMAND_DISCARD,
    COMMAND_ACL, /* may change what users may; CONFIG as well, by requirepass */
} catalogue_kind;

#define CATALOGUE_NAME_MAX 31

typedef struct catalogue_entry {
    char name[CATALOGUE_NAME_MAX + 1]; /* in lower case; empty: no entry */
    uint8_t kind, served;              /* served: its number in the table of served commands */
    bool leaves_strings;               /* to the server, where no other command has left one */
    bool reads;                        /* and does not write */
    bool container;                    /* has subcommands */
    bool blocks;                       /* it may, and then looks at several keys again */
    bool renamed;                      /* goes by another name */
    bool one_db;                       /* its keys are in the database of who sends it */
    int16_t arity, first, last, step;
} catalogue_entry;

/* Tells the number under which a command of that name, in lower case, is served. */
typedef uint8_t catalogue_served(const char *name);
#define CATALOGUE_NOT_SERVED UINT8_MAX
#define CATALOGUE_OURS       (UINT8_MAX - 1) /* it is no command of the server's */

/* Asks the server for its commands: at the start, and when a module has come or gone. */
void catalogue_read(RedisModuleCtx *ctx, catalogue_served *served);

/* The command that goes by a name, in any case; NULL: none that has anything to do with keys. */
const catalogue_entry *catalogue_find(const char *name, size_t len);
/* The same by the command's own name, whatever name redis.conf gives it. */
const catalogue_entry *catalogue_own(const char *name, size_t len);

#endif
