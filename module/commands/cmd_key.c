/* cmd_key.c: CDEL (and CUNLINK), CDELEX, CEXISTS (and CTOUCH), CDBSIZE. */
#include "server/acl.h"
#include "commands/commands.h"
#include "commands/condition.h"
#include "server/reply.h"
#include "keyspace/renamed_maps.h"

int cmd_cdel(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!keyspace_settled(ctx, argv[1])) return REDISMODULE_OK;
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

int cmd_cdelex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc == 2) return cmd_cdel(ctx, argv, argc);
    condition c = {0};
    if (argc != 4 || !condition_word(argv[2], &c))
        return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    c.value = argv[3];
    lookup l;
    bool holds;
    if (!keyspace_find(ctx, argv[1], ckv_now_ms(), &l)) return REDISMODULE_OK;
    if (!l.found) return RedisModule_ReplyWithLongLong(ctx, 0);
    if (!condition_check(&c, &l, &holds)) return REDISMODULE_OK;
    if (holds) {
        keyspace_delete(&l);
        RedisModule_Replicate(ctx, "CDEL", "s", argv[1]);
        keyspace_notify(&l, REDISMODULE_NOTIFY_GENERIC, "del");
    }
    return RedisModule_ReplyWithLongLong(ctx, holds);
}

int cmd_cexists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!keyspace_settled(ctx, argv[1])) return REDISMODULE_OK;
    int64_t now_ms = ckv_now_ms();
    long long found = 0;
    for (int i = 1; i < argc; i++) {
        lookup l;
        if (!keyspace_find_quietly(ctx, argv[i], now_ms, &l)) continue;
        keyspace_note_read(&l);
        found += l.found;
    }
    return RedisModule_ReplyWithLongLong(ctx, found);
}

int cmd_cdbsize(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 1) return RedisModule_WrongArity(ctx);
    if (!acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    strays_find();
    maps_sum sum = maps_add_up(RedisModule_GetSelectedDb(ctx));
    return RedisModule_ReplyWithLongLong(ctx, (long long)sum.totals.records);
}
