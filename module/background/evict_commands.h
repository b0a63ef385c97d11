/*
 * evict_commands.h: commands before which the server's setting of maxmemory is to stand elsewhere
 * (evict.c), as a filter sees them. By the server's own names of them; where a filter is told who
 * sends a command (Redis 7.2).
 */
#ifndef CKV_EVICT_COMMANDS_H
#define CKV_EVICT_COMMANDS_H

#include "ckv.h"
#include "server/filter.h"

/* Whether who sends it may be waiting behind it. */
bool evict_may_block(filtered *command);
/* Whether it writes the file of settings, or carries out a transaction that does. */
bool evict_rewrites_settings(filtered *command);

#endif
