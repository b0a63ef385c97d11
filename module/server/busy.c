/* busy.c: whether clients keep this server busy. See busy.h. */
#include "server/busy.h"

#include "server/clock.h"
#include "server/server_info.h"

/* INFO is asked seldom while commands come. */
#define LOOK_BUSY_US 200000
#define LOOK_IDLE_US 50000
#define IDLE_RATE    100 /* commands a second */

bool busy_clients(RedisModuleCtx *ctx) {
    static bool busy = true;
    static uint64_t looked_us, commands;
    uint64_t passed_us = clock_monotonic_us() - looked_us;
    if (passed_us < (busy ? LOOK_BUSY_US : LOOK_IDLE_US)) return busy;
    uint64_t now = server_info_number(ctx, "stats", "total_commands_processed");
    busy = (now - commands) * 1000000 > passed_us * IDLE_RATE;
    commands = now;
    looked_us += passed_us;
    return busy;
}
