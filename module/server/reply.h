/* reply.h: error texts; most are those of Redis' own string commands. */
#ifndef CKV_REPLY_H
#define CKV_REPLY_H

#include "redismodule.h"

#define ERROR_SYNTAX     "ERR syntax error"
#define ERROR_INTEGER    "ERR value is not an integer or out of range"
#define ERROR_MEMORY     "OOM out of memory"
#define ERROR_LIMIT      "OOM command not allowed when used memory > 'ckv.maxmemory'."
#define ERROR_DAMAGED    "ERR the stored value is damaged"
#define ERROR_NATIVE     "ERR the server refused to run the command"
#define ERROR_TOO_LONG   "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
#define ERROR_TYPE       REDISMODULE_ERRORMSG_WRONGTYPE
#define ERROR_READONLY   "READONLY You can't write against a read only replica."
#define ERROR_CROSS_SLOT "CROSSSLOT Keys in request don't hash to the same slot"
#define ERROR_MOVING     "TRYAGAIN The records of this slot are being moved"

/* Replies an error made of printf-like parts. */
int reply_error(RedisModuleCtx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The running command is one that only this module may send: as if there were none of its name. */
int reply_unknown_command(RedisModuleCtx *ctx);

/* "ERR invalid expire time in 'cset' command" */
int reply_invalid_expire(RedisModuleCtx *ctx, RedisModuleString *command);

/* Whether an argument is this word, in upper or lower case. */
int arg_is(RedisModuleString *arg, const char *word);

#endif
