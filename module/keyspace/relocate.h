/*
 * relocate.h: files of other layouts.
 *
 * A file from a server with another ckv.maps, or from a cluster where this is none, or the other
 * way round, has maps in which nobody would look for their records here. When all of its maps have
 * been read, and before any command from an AOF, their records are put where they belong.
 */
#ifndef CKV_RELOCATE_H
#define CKV_RELOCATE_H

#include "redismodule.h"

#include <stdbool.h>

/* The map of that name is to be emptied. */
void relocate_later(int db, const RedisModuleString *name);

/* Moves the records of those maps. False: some could not be moved, and that is in the log. */
bool relocate_all(void);

/* Nothing is to be moved any more: loading has ended, well or not. */
void relocate_forget(void);

#endif
