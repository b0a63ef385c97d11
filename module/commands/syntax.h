/*
 * syntax.h: the arguments of a command, written as in its documentation, as COMMAND DOCS has them.
 *
 *      key value [condition: NX | XX] [GET] [expiration: EX seconds | KEEPTTL]
 *      numkeys key value [key value ...]
 *
 * A word in capitals is a token; a small one that follows it is its value. What is in brackets is
 * optional, and if it ends in "..." what stands before it may be repeated. Alternatives, in
 * brackets or <...> if one must be chosen, have a name before a colon. What type an argument has
 * follows from its name; "increment:double" says it.
 */
#ifndef CKV_SYNTAX_H
#define CKV_SYNTAX_H

#include "redismodule.h"

/* Builds the arguments from a constant text; they live as long as ctx. `arity` becomes what Redis
 * calls so: the number of words of a call, the command included, negative if it may have more. */
RedisModuleCommandArg *syntax_parse(RedisModuleCtx *ctx, const char *text, int *arity);

#endif
