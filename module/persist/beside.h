/*
 * beside.h: files that are loaded beside the data that is served (repl-diskless-load swapdb).
 *
 * A replica then reads its primary's file into databases of their own. Clients go on reading the
 * old data, and at the end the server swaps all databases, or, if the link broke, drops what has
 * come. While that goes on, commands run between the pieces of the file, but no timers.
 *
 *      STARTED     from now on a map of the file is not listed, and the name of its key is noted
 *      ABORTED     the names are forgotten; the server frees the maps
 *      COMPLETED   what was listed is not any more, what stands under the names is
 *
 * The table of codecs is one for both: those of the file get ids that are free, or are found to be
 * there already. What else the file says (prefixes, shapes of keys) only ever adds.
 */
#ifndef CKV_BESIDE_H
#define CKV_BESIDE_H

#include "redismodule.h"

#include <stdbool.h>

/* Whether the file that is being loaded is. */
bool beside_loading(void);

/* A map of the file, loaded and not listed; misplaced: its records are to be put in place. */
void beside_note(const RedisModuleString *name, bool misplaced);

int beside_start(RedisModuleCtx *ctx);

#endif
