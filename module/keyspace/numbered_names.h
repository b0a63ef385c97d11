/*
 * numbered_names.h: names, each behind a number: that of its database, or of the client that needs
 * it. They are in dictionaries, as in names.h: one with nothing in it is NULL.
 */
#ifndef CKV_NUMBERED_NAMES_H
#define CKV_NUMBERED_NAMES_H

#include "ckv.h"

void numbered_add(RedisModuleDict **names, uint64_t number, const RedisModuleString *name);
bool numbered_has(RedisModuleDict *names, uint64_t number, const RedisModuleString *name);
void numbered_drop(RedisModuleDict **names, uint64_t number, const RedisModuleString *name);
/* Adds all of a dictionary of names, which may be NULL. */
void numbered_add_all(RedisModuleDict **names, uint64_t number, RedisModuleDict *others);

/* Takes them all, each to `handle`, which may add others. */
typedef void numbered_handle(uint64_t number, RedisModuleString *name);
void numbered_each(RedisModuleDict **names, numbered_handle *handle);

/* Copies `most` names at most, in their order, with their numbers, to be freed by the caller:
 * those behind `*next`, which is the last of them then; NULL: from the first on, or there are no
 * more. Returns how many. */
size_t numbered_some(RedisModuleDict *names, RedisModuleString **next, RedisModuleString **list,
                     size_t most);
/* The number of one of those, and its name, to be freed by the caller. */
uint64_t numbered_split(const RedisModuleString *numbered, RedisModuleString **name);

#endif
