/* cmd_getset.c: the short forms of CSET and CGET: CGETDEL, CGETEX, CGETSET, CSETNX, CSETEX,
 * CPSETEX. */
#include "commands/commands.h"
#include "commands/expire_args.h"
#include "keyspace/lookup.h"
#include "keyspace/native.h"
#include "keyspace/replicate.h"
#include "server/clock.h"
#include "server/reply.h"

/* Stores argv's value and tells everybody; at_ms as record_put() has it. False: the error is
 * replied. */
static bool store(record *r, RedisModuleString *value, int64_t at_ms) {
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(value, &len);
    if (!record_put(r, bytes, len, at_ms)) return false;
    replicate_set(r->ctx, r->name, value, at_ms);
    record_notify_set(r, at_ms != EXPIRY_NEVER);
    return true;
}

int cmd_csetnx(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    if (r.found) return RedisModule_ReplyWithLongLong(ctx, 0);
    return store(&r, argv[2], EXPIRY_NEVER) ? RedisModule_ReplyWithLongLong(ctx, 1)
                                            : REDISMODULE_OK;
}

static int set_expiring(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int unit) {
    if (argc != 4) return RedisModule_WrongArity(ctx);
    int64_t at_ms, now_ms = clock_now_ms();
    if (!expire_read(ctx, argv[0], argv[2], unit, now_ms, true, &at_ms)) return REDISMODULE_OK;
    record r;
    if (!lookup_key(ctx, argv, argc, now_ms, &r) || !store(&r, argv[3], at_ms))
        return REDISMODULE_OK;
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

int cmd_csetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiring(ctx, argv, argc, EXPIRE_SECONDS);
}

int cmd_cpsetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiring(ctx, argv, argc, 0);
}

int cmd_cgetset(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    record_note_read(&r);
    RedisModuleString *old;
    if (!record_copy_value(&r, &old)) return REDISMODULE_OK;
    return store(&r, argv[2], EXPIRY_NEVER) ? record_reply_copy(&r, old)
                                            : record_forget_copy(&r, old);
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
