/* version.c: see version.h. */
#include "server/version.h"

#include "redismodule.h"

#include <stdlib.h>

/* 0: it is Redis. */
static double valkey(void) {
    static double version = -1;
    if (version >= 0) return version;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(NULL, "server");
    const char *text = RedisModule_ServerInfoGetFieldC(info, "valkey_version");
    version = text ? strtod(text, NULL) : 0;
    RedisModule_FreeServerInfo(NULL, info);
    return version;
}

bool version_is_redis(int version) {
    return valkey() == 0 && RedisModule_GetServerVersion() >= version;
}

bool version_is_valkey(double version) {
    return valkey() > 0 && valkey() >= version;
}
