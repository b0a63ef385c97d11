/* server_info.c: see server_info.h. */
#include "server/server_info.h"

uint64_t server_info_number(RedisModuleCtx *ctx, const char *section, const char *field) {
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, section);
    uint64_t number = RedisModule_ServerInfoGetFieldUnsigned(info, field, NULL);
    RedisModule_FreeServerInfo(ctx, info);
    return number;
}
