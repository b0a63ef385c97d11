/* version.c: see version.h. */
#include "server/version.h"

#include "redismodule.h"

static bool is_valkey(void) {
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(NULL, "server");
    bool is = RedisModule_ServerInfoGetFieldC(info, "valkey_version") != NULL;
    RedisModule_FreeServerInfo(NULL, info);
    return is;
}

bool version_is_redis(int version) {
    static enum { UNKNOWN, REDIS, VALKEY } which;
    if (which == UNKNOWN) which = is_valkey() ? VALKEY : REDIS;
    return which == REDIS && RedisModule_GetServerVersion() >= version;
}
