/* register.h: makes commands known to the server. */
#ifndef CKV_REGISTER_H
#define CKV_REGISTER_H

#include "commands/command_table.h"

/* One command. */
int register_command(RedisModuleCtx *ctx, const command_entry *e);

/* All of the table. */
int register_commands(RedisModuleCtx *ctx);

#endif
