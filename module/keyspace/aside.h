/*
 * aside.h: strings under a prefix that are left to the server for a while, though they belong into
 * ckv:
 *
 *      moved out     a command that only the server can run has come by, and another may follow
 *      pieces        a longer value that is appended to, or written in part
 *      bits          bit maps and HyperLogLogs: all commands on them are the server's
 *      watched       EXEC asks the server whether a watched key has expired
 *      open slots    whose map may be on another node of a cluster
 *
 * Their names are kept in two generations. Whoever is not named again for a minute or two is due:
 * background/mover.c takes it in, or early, where memory is short. What is to be kept until it is
 * due (what is watched, what is long) has two generations of its own.
 */
#ifndef CKV_ASIDE_H
#define CKV_ASIDE_H

#include "ckv.h"

void aside_note(const RedisModuleString *name);
/* It is kept until it is due; so it is when it is named again. */
void aside_keep(const RedisModuleString *name);
bool aside_has(const RedisModuleString *name);

/* A name that is due, which is forgotten; the caller frees it. NULL: none. */
RedisModuleString *aside_next_due(void);

/* The same where memory is short: whether there is one that has not been named for a second, or
 * since many others were; and its name. */
bool aside_any_early(void);
RedisModuleString *aside_next_early(void);

/* Whether names were forgotten before they were due, because there were too many; asks once. */
bool aside_has_lost(void);

#endif
