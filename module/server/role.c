/* role.c: what this server may decide by itself. See role.h. */
#include "server/role.h"

#include "server/pause.h"
#include "server/settings.h"

bool role_loads(RedisModuleCtx *ctx) {
    int flags = RedisModule_GetContextFlags(ctx);
    return (flags & REDISMODULE_CTX_FLAGS_LOADING) &&
           !(flags & REDISMODULE_CTX_FLAGS_ASYNC_LOADING);
}

bool role_repeats(RedisModuleCtx *ctx) {
    return RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_REPLICATED || role_loads(ctx);
}

bool role_follows(RedisModuleCtx *ctx) {
    return RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_SLAVE || role_repeats(ctx);
}

bool role_may_expire(RedisModuleCtx *ctx) {
    return !role_follows(ctx) && !settings_import_mode() && !pause_holds();
}

/* A replica holds what its primary holds, whatever its own maxmemory says. */
bool role_may_evict(RedisModuleCtx *ctx) {
    return role_may_expire(ctx);
}

bool role_mirrors(void) {
    int mirrors = REDISMODULE_CTX_FLAGS_SLAVE | REDISMODULE_CTX_FLAGS_CLUSTER;
    return (RedisModule_GetContextFlags(NULL) & mirrors) == mirrors;
}
