/* cmd_expire.c: reading and setting when a record expires, as Redis' TTL and EXPIRE families. */
#include "commands/commands.h"
#include "commands/expire_args.h"
#include "keyspace/exact_times.h"
#include "keyspace/lookup.h"
#include "server/clock.h"
#include "server/reply.h"

/* ---- reading --------------------------------------------------------------------------------- */

#define REPLY_NO_RECORD (-2)
#define REPLY_NO_EXPIRY (-1)

/* EXPIRY_NEVER: not known, or never. */
static int64_t exact_time(const record *r) {
    return exact_times_of(r->in->m, &r->key, &r->pos);
}

/* What may be told of the expiry of a record that was found, as `unit` says. The record may live a
 * little longer than that: as long as it does, a ms is left, for scripts ask whether anything is.
 */
static int64_t told_expiry(const record *r, int unit) {
    int64_t exact = exact_time(r);
    int64_t at_ms = exact != EXPIRY_NEVER ? exact : map_expiry_told_ms(&r->pos);
    if (at_ms == EXPIRY_NEVER) return REPLY_NO_EXPIRY;
    if (!(unit & EXPIRE_ABSOLUTE)) at_ms = at_ms > r->now_ms ? at_ms - r->now_ms : 1;
    return unit & EXPIRE_SECONDS ? (at_ms + 500) / 1000 : at_ms;
}

/* Replies the expiry as `unit` says. */
static int reply_expiry(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int unit) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    record_note_look(&r);
    return RedisModule_ReplyWithLongLong(ctx, r.found ? told_expiry(&r, unit) : REPLY_NO_RECORD);
}

int cmd_cttl(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return reply_expiry(ctx, argv, argc, EXPIRE_SECONDS);
}
int cmd_cpttl(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return reply_expiry(ctx, argv, argc, 0);
}
int cmd_cexpiretime(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return reply_expiry(ctx, argv, argc, EXPIRE_SECONDS | EXPIRE_ABSOLUTE);
}
int cmd_cpexpiretime(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return reply_expiry(ctx, argv, argc, EXPIRE_ABSOLUTE);
}

/* ---- setting --------------------------------------------------------------------------------- */

typedef struct conditions {
    bool nx, xx, gt, lt;
} conditions;

/* False: the error is replied. */
static bool parse_conditions(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                             conditions *c) {
    *c = (conditions){0};
    for (int i = 3; i < argc; i++) {
        if (arg_is(argv[i], "nx"))
            c->nx = true;
        else if (arg_is(argv[i], "xx"))
            c->xx = true;
        else if (arg_is(argv[i], "gt"))
            c->gt = true;
        else if (arg_is(argv[i], "lt"))
            c->lt = true;
        else {
            reply_error(ctx, "ERR Unsupported option %s", RedisModule_StringPtrLen(argv[i], NULL));
            return false;
        }
    }
    if (c->nx && (c->xx || c->gt || c->lt)) {
        RedisModule_ReplyWithError(
            ctx, "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if (c->gt && c->lt) {
        RedisModule_ReplyWithError(ctx,
                                   "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

/* What is known of the two times are the ends between which they lie, unless the one that is there
 * has just been set; a time that is set again, later, lies within what it was before. So it is
 * neither greater nor less than itself. But a TTL that is asked for again reaches further than
 * before. */
static bool is_later(const record *r, int64_t at_ms, uint16_t code, int unit) {
    int64_t exact = exact_time(r);
    if (exact != EXPIRY_NEVER) return at_ms > exact;
    int64_t end = expiry_ms(code, expiry_ticks(r->now_ms)), present = map_expiry_ms(&r->pos);
    bool again = !(unit & EXPIRE_ABSOLUTE) && at_ms > map_expiry_told_ms(&r->pos);
    return end > present || (again && end == present);
}

static bool is_earlier(const record *r, int64_t at_ms, uint16_t code) {
    int64_t exact = exact_time(r);
    if (exact != EXPIRY_NEVER) return at_ms < exact;
    return expiry_told_ms(code, expiry_ticks(r->now_ms)) < map_expiry_told_ms(&r->pos);
}

/* No expiry counts as the end of time. */
static bool met(const conditions *c, const record *r, int64_t at_ms, int unit) {
    bool never = map_expiry_ms(&r->pos) == EXPIRY_NEVER;
    uint16_t code = expiry_code(at_ms, r->now_ms);
    if (c->nx && !never) return false;
    if (c->xx && never) return false;
    if (c->gt && (never || !is_later(r, at_ms, code, unit))) return false;
    return !c->lt || is_earlier(r, at_ms, code);
}

static int set_expiry(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int unit) {
    if (argc < 3) return RedisModule_WrongArity(ctx);
    conditions c;
    int64_t at_ms, now_ms = clock_now_ms();
    if (!parse_conditions(ctx, argv, argc, &c)) return REDISMODULE_OK;
    if (!expire_read(ctx, argv[0], argv[2], unit, now_ms, false, &at_ms)) return REDISMODULE_OK;
    record r;
    if (!lookup_key(ctx, argv, argc, now_ms, &r)) return REDISMODULE_OK;
    bool wanted = r.found && met(&c, &r, at_ms, unit);
    if (!wanted || record_expire(&r, at_ms)) RedisModule_ReplyWithLongLong(ctx, wanted);
    return REDISMODULE_OK;
}

int cmd_cexpire(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiry(ctx, argv, argc, EXPIRE_SECONDS);
}
int cmd_cpexpire(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiry(ctx, argv, argc, 0);
}
int cmd_cexpireat(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiry(ctx, argv, argc, EXPIRE_SECONDS | EXPIRE_ABSOLUTE);
}
int cmd_cpexpireat(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return set_expiry(ctx, argv, argc, EXPIRE_ABSOLUTE);
}

int cmd_cpersist(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    bool had_expiry = r.found && map_expiry_ms(&r.pos) != EXPIRY_NEVER;
    if (!had_expiry || record_persist(&r)) RedisModule_ReplyWithLongLong(ctx, had_expiry);
    return REDISMODULE_OK;
}
