/* filter.c: a module with a command filter that does nothing: what any filter costs a server. */
#include "redismodule.h"

static void pass(RedisModuleCommandFilterCtx *command) {
    (void)command;
}

__attribute__((visibility("default"))) int RedisModule_OnLoad(RedisModuleCtx *ctx,
                                                              RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (RedisModule_Init(ctx, "filter", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        !RedisModule_RegisterCommandFilter(ctx, pass, 0))
        return REDISMODULE_ERR;
    return REDISMODULE_OK;
}
