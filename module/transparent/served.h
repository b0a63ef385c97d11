/*
 * served.h: the server's commands that are served from ckv, and our commands that stand for them.
 *
 * For each there are two commands, which the filter gives the arguments of the server's own:
 *
 *      ckv.get    users may run it as their ACL rules say (categories, +@all)
 *      ckv+get    anybody may, and it asks whether the user may run GET
 *
 * Which one is taken, and why: permission.h.
 */
#ifndef CKV_SERVED_H
#define CKV_SERVED_H

#include "transparent/catalogue.h"

/* Where the keys of a served command are, and what the filter needs of them. */
typedef enum served_keys {
    SERVED_KEYLESS, /* it concerns all keys */
    SERVED_CURSOR,  /* the same; the first argument leads to a node of a cluster, as a key would */
    SERVED_FIGURES, /* none: it is about what they add up to, and the server itself may run it as
                       well */
    SERVED_FIRST,   /* the first argument */
    SERVED_SECOND,  /* the second one, if there is one */
    SERVED_STORE,   /* the first one, and the one behind the word STORE */
    SERVED_ANY,     /* every argument; each is looked at by itself */
    SERVED_PAIRS,   /* every other argument, and all must match */
    SERVED_COUNTED, /* the same, behind their number */
} served_keys;

/* Makes the commands known to the server. Once, when ours are. */
int served_register(RedisModuleCtx *ctx);
/* Where the module is not loaded after all. */
void served_give_back(void);

/* The number of the server's command of that name, in lower case, or CATALOGUE_NOT_SERVED;
 * CATALOGUE_OURS: it tells an AOF and replicas of moves. */
uint8_t served_find(const char *name);
served_keys served_keys_of(int served);
/* Whether it lists or counts all keys, which nobody else can. */
bool served_lists(int served);
/* Whether it may write a string under a key that has none: which belongs into ckv. */
bool served_writes_strings(int served);

/* The two names, for the filter to put in place of the server's; owned here. */
RedisModuleString *served_by_rules(int served);
RedisModuleString *served_asking(int served);

/* One for a command that can't run before records have come from another node, with a key of these
 * before its arguments: its reply is TRYAGAIN. */
RedisModuleString *served_moving(void);

#endif
