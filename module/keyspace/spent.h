/*
 * spent.h: dictionaries of names that nobody needs any more.
 *
 * To free a large one takes tens of milliseconds. So names go some at a time: between commands, and
 * whenever others are taken note of, lest they become ever more.
 */
#ifndef CKV_SPENT_H
#define CKV_SPENT_H

#include "ckv.h"

/* Takes a dictionary, if there is one, and leaves NULL. `told`, if it is not NULL, is told of each
 * name before it goes. Those of one that has few are gone at once. */
typedef void spent_told(void *context, const char *name, size_t len);
void spent_take(RedisModuleDict **names, spent_told *told, void *context);

/* With each name that is added to a dictionary that will be spent. */
void spent_free_some(void);

/* Between commands. Whether there are more. */
bool spent_step(void);

#endif
