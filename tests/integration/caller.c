/* caller.c: another module, which calls commands as modules do.
 *
 *   CALLER.CALL <modifiers> <command> [arg ...]   what RM_Call with these modifiers says
 */
#include "redismodule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int call(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RedisModule_WrongArity(ctx);
    char format[32];
    snprintf(format, sizeof format, "v%s", RedisModule_StringPtrLen(argv[1], NULL));
    errno = 0;
    RedisModuleCallReply *reply = RedisModule_Call(ctx, RedisModule_StringPtrLen(argv[2], NULL),
                                                   format, argv + 3, (size_t)argc - 3);
    if (!reply) return RedisModule_ReplyWithError(ctx, strerror(errno));
    RedisModule_ReplyWithCallReply(ctx, reply);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (RedisModule_Init(ctx, "caller", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    return RedisModule_CreateCommand(ctx, "caller.call", call, "write", 0, 0, 0);
}
