/* waiting.c: clients that wait for background work. See waiting.h. */
#include "server/waiting.h"

static int reply(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    const char *error = RedisModule_GetBlockedClientPrivateData(ctx);
    return error ? RedisModule_ReplyWithError(ctx, error)
                 : RedisModule_ReplyWithSimpleString(ctx, "OK");
}

bool waiting_possible(RedisModuleCtx *ctx) {
    int unable = REDISMODULE_CTX_FLAGS_MULTI | REDISMODULE_CTX_FLAGS_LUA |
                 REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
    return !(RedisModule_GetContextFlags(ctx) & unable);
}

bool waiting_add(RedisModuleCtx *ctx, waiting *w) {
    if (!waiting_possible(ctx)) {
        RedisModule_ReplyWithError(ctx, "ERR this command can't wait in a transaction or script");
        return false;
    }
    w->clients = RedisModule_Realloc(w->clients, (w->count + 1) * sizeof *w->clients);
    w->clients[w->count++] = RedisModule_BlockClient(ctx, reply, NULL, NULL, 0);
    return true;
}

void waiting_answer(waiting *w, const char *error) {
    for (size_t i = 0; i < w->count; i++) RedisModule_UnblockClient(w->clients[i], (void *)error);
    w->count = 0;
}
