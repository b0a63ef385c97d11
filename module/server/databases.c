/* databases.c: see databases.h. */
#include "server/databases.h"

#include "ckv.h"

int databases_count(void) {
    static int count;
    if (count) return count;
    int selected = RedisModule_GetSelectedDb(ckv.ctx);
    while (RedisModule_SelectDb(ckv.ctx, count) == REDISMODULE_OK) count++;
    RedisModule_SelectDb(ckv.ctx, selected);
    return count;
}
