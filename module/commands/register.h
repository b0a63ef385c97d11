/* register.h: makes commands known to the server. */
#ifndef CKV_REGISTER_H
#define CKV_REGISTER_H

#include "commands/command_table.h"

#include <stdbool.h>

/* One command. */
int register_command(RedisModuleCtx *ctx, const command_entry *e);

/* All of the table. */
int register_commands(RedisModuleCtx *ctx);

/* Whether of counted keys the server knows the first alone. What it would ask of the others, the
 * user's permissions and whether they are of one slot, is left to the command. */
bool register_first_only(void);

#endif
