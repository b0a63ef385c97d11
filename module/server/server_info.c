/* server_info.c: see server_info.h. */
#include "server/server_info.h"

#include <string.h>

uint64_t server_info_number(RedisModuleCtx *ctx, const char *section, const char *field) {
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, section);
    uint64_t number = RedisModule_ServerInfoGetFieldUnsigned(info, field, NULL);
    RedisModule_FreeServerInfo(ctx, info);
    return number;
}

bool server_info_is(RedisModuleCtx *ctx, const char *section, const char *field,
                    const char *value) {
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, section);
    const char *told = RedisModule_ServerInfoGetFieldC(info, field);
    bool is = told && !strcmp(told, value);
    RedisModule_FreeServerInfo(ctx, info);
    return is;
}
