/* busy.c: whether clients keep this server busy. See busy.h. */
#include "server/busy.h"

#include "server/clock.h"

/* INFO takes as long as some ten commands: it is asked seldom while they come. */
#define LOOK_BUSY_US 200000
#define LOOK_IDLE_US 50000
#define IDLE_RATE    100 /* commands a second */

bool busy_clients(RedisModuleCtx *ctx) {
    static bool busy = true;
    static uint64_t looked_us, commands;
    uint64_t passed_us = clock_monotonic_us() - looked_us;
    int error;
    if (passed_us < (busy ? LOOK_BUSY_US : LOOK_IDLE_US)) return busy;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "stats");
    uint64_t now = RedisModule_ServerInfoGetFieldUnsigned(info, "total_commands_processed", &error);
    RedisModule_FreeServerInfo(ctx, info);
    busy = (now - commands) * 1000000 > passed_us * IDLE_RATE;
    commands = now;
    looked_us += passed_us;
    return busy;
}
