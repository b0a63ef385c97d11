/* cmd_key.c: CDEL, CEXISTS, CDBSIZE. */
#include "commands.h"
#include "keyspace.h"

int cmd_cdel(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    int64_t now_ms = ckv_now_ms();
    long long deleted = 0;
    bool changed = false;
    for (int i = 1; i < argc; i++) {
        lookup l;
        if (!keyspace_find_quietly(ctx, argv[i], now_ms, &l)) continue;
        /* On a replica, what has expired is still stored: the primary says that it goes. */
        if (l.stored_there) {
            bool existed = l.found;
            keyspace_delete(&l);
            if (existed) keyspace_notify(&l, REDISMODULE_NOTIFY_GENERIC, "del");
            deleted += existed;
            changed = true;
        }
    }
    if (changed) RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithLongLong(ctx, deleted);
}

int cmd_cexists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    int64_t now_ms = ckv_now_ms();
    long long found = 0;
    for (int i = 1; i < argc; i++) {
        lookup l;
        if (!keyspace_find_quietly(ctx, argv[i], now_ms, &l)) continue;
        found += l.found;
    }
    return RedisModule_ReplyWithLongLong(ctx, found);
}

int cmd_cdbsize(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv;
    if (argc != 1) return RedisModule_WrongArity(ctx);
    maps_sum sum = maps_add_up(RedisModule_GetSelectedDb(ctx));
    return RedisModule_ReplyWithLongLong(ctx, (long long)sum.totals.records);
}
