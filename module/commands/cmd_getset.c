/* cmd_getset.c: the short forms of CSET and CGET: CGETDEL, CGETEX, CGETSET, CSETNX, CSETEX,
 * CPSETEX. */
#include "commands/commands.h"
#include "commands/expire_args.h"
#include "keyspace/lookup.h"
#include "server/reply.h"

/* Stores argv's value and tells everybody; at_ms as keyspace_put() has it. False: the error is
 * replied. */
static bool store(lookup *l, RedisModuleString *value, int64_t at_ms) {
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(value, &len);
    if (!keyspace_put(l, bytes, len, at_ms)) return false;
    if (at_ms == EXPIRY_NEVER)
        RedisModule_Replicate(l->ctx, "CSET", "ss", l->name, value);
    else
        RedisModule_Replicate(l->ctx, "CSET", "sscl", l->name, value, "PXAT", (long long)at_ms);
    keyspace_notify(l, REDISMODULE_NOTIFY_STRING, "set");
    if (at_ms != EXPIRY_NEVER) keyspace_notify(l, REDISMODULE_NOTIFY_GENERIC, "expire");
    return true;
}

int cmd_csetnx(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    lookup l;
    if (!keyspace_find(ctx, argv[1], ckv_now_ms(), &l)) return REDISMODULE_OK;
    if (l.found) return RedisModule_ReplyWithLongLong(ctx, 0);
    return store(&l, argv[2], EXPIRY_NEVER) ? RedisModule_ReplyWithLongLong(ctx, 1)
                                            : REDISMODULE_OK;
}

static int set_expiring(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int unit) {
    if (argc != 4) return RedisModule_WrongArity(ctx);
    int64_t at_ms, now_ms = ckv_now_ms();
    if (!time_read(ctx, argv[0], argv[2], unit, now_ms, true, &at_ms)) return REDISMODULE_OK;
    lookup l;
    if (!keyspace_find(ctx, argv[1], now_ms, &l) || !store(&l, argv[3], at_ms))
        return REDISMODULE_OK;
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

int cmd_csetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiring(ctx, argv, argc, TIME_SECONDS);
}

int cmd_cpsetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiring(ctx, argv, argc, 0);
}

int cmd_cgetset(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    lookup l;
    if (!keyspace_find(ctx, argv[1], ckv_now_ms(), &l)) return REDISMODULE_OK;
    keyspace_note_read(&l);
    if (keyspace_reply_value(&l)) store(&l, argv[2], EXPIRY_NEVER);
    return REDISMODULE_OK;
}

int cmd_cgetdel(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    lookup l;
    if (!keyspace_find(ctx, argv[1], ckv_now_ms(), &l)) return REDISMODULE_OK;
    keyspace_note_read(&l);
    if (!keyspace_reply_value(&l) || !l.found) return REDISMODULE_OK;
    keyspace_delete(&l);
    RedisModule_Replicate(ctx, "CDEL", "s", argv[1]);
    keyspace_notify(&l, REDISMODULE_NOTIFY_GENERIC, "del");
    return REDISMODULE_OK;
}

int cmd_cgetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    bool persist = argc == 3 && arg_is(argv[2], "persist");
    int unit = argc == 4 ? time_option(argv[2]) : -1;
    if (argc > 2 && !persist && unit < 0) return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    int64_t at_ms = EXPIRY_NEVER, now_ms = ckv_now_ms();
    lookup l;
    if (!keyspace_find(ctx, argv[1], now_ms, &l)) return REDISMODULE_OK;
    keyspace_note_read(&l);
    /* As GETEX: where there is no record, the time does not matter. */
    if (l.found && unit >= 0 && !time_read(ctx, argv[0], argv[3], unit, now_ms, true, &at_ms))
        return REDISMODULE_OK;
    if (!keyspace_reply_value(&l) || !l.found) return REDISMODULE_OK;
    if (unit >= 0)
        keyspace_expire(&l, at_ms);
    else if (persist)
        keyspace_persist(&l);
    return REDISMODULE_OK;
}
