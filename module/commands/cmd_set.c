/* cmd_set.c: CSET, as Redis' SET, and what it is for short: CSETNX, CSETEX, CPSETEX, CGETSET. */
#include "commands/commands.h"
#include "commands/condition.h"
#include "commands/expire_args.h"
#include "keyspace/lookup.h"
#include "keyspace/native.h"
#include "keyspace/replicate.h"
#include "server/acl.h"
#include "server/clock.h"
#include "server/reply.h"

typedef struct set_options {
    RedisModuleString *value;
    bool nx, xx, get, keep_ttl;
    bool counts; /* replies how many records it has written, 0 or 1 */
    condition condition;
    int condition_at;          /* the argument that is compared */
    int unit;                  /* of the expiry, -1: none is given */
    RedisModuleString *expire; /* its number */
    int64_t at_ms;             /* what that comes to, as record_put() has it */
    uint64_t disturbed;        /* ckv.disturbed when the value was encoded */
} set_options;

/* ---- writing --------------------------------------------------------------------------------- */

/* Whether the options let the record be written. False: the value is damaged, and that is the
 * reply. */
static bool may_write(const set_options *o, record *r, bool *may) {
    *may = !(o->nx && r->found) && !(o->xx && !r->found);
    return !o->condition.value || condition_check(&o->condition, r, may);
}

/* Writes the record. If others came by since the value was encoded, another one may be in its
 * place. False: the error is replied. */
static bool write_value(const set_options *o, record *r, const codec_value *encoded) {
    size_t len;
    if (o->disturbed == ckv.disturbed) return record_put_encoded(r, encoded, o->at_ms);
    const char *bytes = RedisModule_StringPtrLen(o->value, &len);
    return record_put(r, bytes, len, o->at_ms);
}

/* Writes the record and tells everybody. False: the error is replied. */
static bool put(const set_options *o, record *r, const codec_value *encoded) {
    if (record_is_put_expired(r, o->at_ms)) return true;
    if (!write_value(o, r, encoded)) return false;
    replicate_set(r->ctx, r->name, o->value, o->at_ms);
    record_notify_set(r, o->unit >= 0);
    return true;
}

/* Writes the record if the options let it be written, and replies. */
static int put_if_wanted(const set_options *o, record *r, const codec_value *encoded) {
    bool may;
    RedisModuleString *old = NULL;
    if (o->get && !record_copy_value(r, &old)) return REDISMODULE_OK;
    if (o->get) record_note_read(r);
    record_refresh(r); /* who was told of a miss may have loaded it */
    if (!may_write(o, r, &may) || (may && !put(o, r, encoded))) return record_forget_copy(r, old);
    if (o->get) return record_reply_copy(r, old);
    if (o->counts) return RedisModule_ReplyWithLongLong(r->ctx, may);
    return may ? RedisModule_ReplyWithSimpleString(r->ctx, "OK")
               : RedisModule_ReplyWithNull(r->ctx);
}

/* Where the string is the server's own: its SET is called without the condition. */
static int set_native(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                      const set_options *o) {
    bool holds;
    if (!condition_check_native(&o->condition, ctx, argv[1], &holds)) return REDISMODULE_OK;
    if (!holds && !o->get) return RedisModule_ReplyWithNull(ctx);
    if (!holds) return native_reply(ctx, native_call(ctx, NATIVE_REPLICATES, "get", argv + 1, 1));
    RedisModuleString **plain = RedisModule_Alloc((size_t)argc * sizeof *plain);
    int n = 0;
    for (int i = 0; i < argc; i++) {
        bool compares = i == o->condition_at - 1 || i == o->condition_at;
        if (!compares) plain[n++] = argv[i];
    }
    native_run(ctx, plain, n);
    RedisModule_Free(plain);
    return REDISMODULE_OK;
}

/* The record's memory arrives while the value is encoded. */
static int set(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, set_options *o) {
    int64_t now_ms = clock_now_ms();
    o->at_ms = o->keep_ttl ? EXPIRY_KEPT : EXPIRY_NEVER;
    if (o->unit >= 0 && !expire_read(ctx, argv[0], o->expire, o->unit, now_ms, true, &o->at_ms))
        return REDISMODULE_OK;
    record r;
    size_t len;
    codec_value encoded;
    const char *value = RedisModule_StringPtrLen(o->value, &len);
    lookup_begin(ctx, argv[1], now_ms, &r);
    o->disturbed = ckv.disturbed;
    if (!map_encode(&ckv.shared, value, len, &encoded))
        return RedisModule_ReplyWithError(ctx, ERROR_MEMORY);
    lookup_answer answer = lookup_finish(&r);
    if (answer == LOOKUP_NATIVE && o->condition.value) return set_native(ctx, argv, argc, o);
    if (!lookup_reply_answer(&r, argv, argc, answer)) return REDISMODULE_OK;
    return put_if_wanted(o, &r, &encoded);
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* False: a syntax error. */
static bool parse_set(RedisModuleString **argv, int argc, set_options *o) {
    *o = (set_options){.value = argv[2], .unit = -1};
    for (int i = 3; i < argc; i++) {
        bool may_compare = !o->nx && !o->xx && !o->condition.value && i + 1 < argc;
        if (arg_is(argv[i], "nx") && !o->xx && !o->condition.value)
            o->nx = true;
        else if (arg_is(argv[i], "xx") && !o->nx && !o->condition.value)
            o->xx = true;
        else if (may_compare && condition_word(argv[i], &o->condition))
            o->condition.value = argv[o->condition_at = ++i];
        else if (arg_is(argv[i], "get"))
            o->get = true;
        else if (arg_is(argv[i], "keepttl") && o->unit < 0)
            o->keep_ttl = true;
        else if (o->keep_ttl || !expire_take(argv, argc, &i, &o->unit, &o->expire))
            return false;
    }
    return true;
}

int cmd_cset(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RedisModule_WrongArity(ctx);
    set_options o;
    if (!parse_set(argv, argc, &o)) return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    /* Its key counts as written only, so the server has not asked whether the user may read it. */
    if ((o.get || o.condition.value) && !acl_may_read(ctx, argv, argc, argv[1]))
        return REDISMODULE_OK;
    return set(ctx, argv, argc, &o);
}

int cmd_csetnx(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    set_options o = {.value = argv[2], .unit = -1, .nx = true, .counts = true};
    return set(ctx, argv, argc, &o);
}

int cmd_cgetset(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    set_options o = {.value = argv[2], .unit = -1, .get = true};
    return set(ctx, argv, argc, &o);
}

static int set_expiring(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int unit) {
    if (argc != 4) return RedisModule_WrongArity(ctx);
    set_options o = {.value = argv[3], .unit = unit, .expire = argv[2]};
    return set(ctx, argv, argc, &o);
}

int cmd_csetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiring(ctx, argv, argc, EXPIRE_SECONDS);
}

int cmd_cpsetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiring(ctx, argv, argc, 0);
}
