/* cmd_get.c: CGET, as Redis' GET, and its kin: CSTRLEN, CGETDEL, CGETEX. */
#include "commands/commands.h"
#include "commands/expire_args.h"
#include "keyspace/lookup.h"
#include "keyspace/native.h"
#include "server/clock.h"
#include "server/reply.h"

int cmd_cget(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    record_note_read(&r);
    record_reply_value(&r);
    return REDISMODULE_OK;
}

int cmd_cstrlen(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    record_note_read(&r);
    size_t len;
    if (record_value_len(&r, &len)) RedisModule_ReplyWithLongLong(ctx, (long long)len);
    return REDISMODULE_OK;
}

int cmd_cgetdel(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    record_note_read(&r);
    RedisModuleString *old;
    if (!record_copy_value(&r, &old)) return REDISMODULE_OK;
    if (r.found) record_delete_by_command(&r);
    return record_reply_copy(&r, old);
}

typedef struct getex_options {
    bool persist;
    int unit;                  /* of the expiry, -1: none is given */
    RedisModuleString *expire; /* its number */
} getex_options;

/* False: a syntax error. */
static bool parse_getex(RedisModuleString **argv, int argc, getex_options *o) {
    *o = (getex_options){.unit = -1};
    for (int i = 2; i < argc; i++) {
        if (arg_is(argv[i], "persist") && o->unit < 0)
            o->persist = true;
        else if (o->persist || !expire_take(argv, argc, &i, &o->unit, &o->expire))
            return false;
    }
    return true;
}

int cmd_cgetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    getex_options o;
    if (!parse_getex(argv, argc, &o)) return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    int64_t at_ms = EXPIRY_NEVER, now_ms = clock_now_ms();
    record r;
    RedisModuleString *value;
    if (!lookup_key(ctx, argv, argc, now_ms, &r)) return REDISMODULE_OK;
    /* Of what is missing, servers differ in which errors of the options come first. */
    if (!r.found && argc > 2 && native_sent(ctx)) return native_run(ctx, argv, argc);
    record_note_read(&r);
    bool changes = r.found && (o.unit >= 0 || o.persist);
    if (!changes) {
        record_reply_value(&r);
        return REDISMODULE_OK;
    }
    /* As GETEX: where there is no record, the time does not matter. */
    if (o.unit >= 0 && !expire_read(ctx, argv[0], o.expire, o.unit, now_ms, true, &at_ms))
        return REDISMODULE_OK;
    if (!record_copy_value(&r, &value)) return REDISMODULE_OK;
    bool done = o.persist ? record_persist(&r) : record_expire(&r, at_ms);
    return done ? record_reply_copy(&r, value) : record_forget_copy(&r, value);
}
