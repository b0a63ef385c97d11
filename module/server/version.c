/* version.c: see version.h. */
#include "server/version.h"

#include "redismodule.h"

#include <stdio.h>

/* 0: it is Redis. */
static int valkey(void) {
    static int version = -1;
    if (version >= 0) return version;
    int major = 0, minor = 0;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(NULL, "server");
    const char *text = RedisModule_ServerInfoGetFieldC(info, "valkey_version");
    if (text) sscanf(text, "%d.%d", &major, &minor);
    version = major << 16 | minor << 8;
    RedisModule_FreeServerInfo(NULL, info);
    return version;
}

bool version_is_redis(int version) {
    return valkey() == 0 && RedisModule_GetServerVersion() >= version;
}

bool version_is_valkey(int version) {
    return valkey() > 0 && valkey() >= version;
}

bool version_is_7_0(void) {
    return RedisModule_GetServerVersion() < REDIS_7_2;
}
