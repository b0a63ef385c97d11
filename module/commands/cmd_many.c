/* cmd_many.c: CMGET, CMSET, CMSETNX, CMSETEX: several records in one command, all or none. */
#include "commands/commands.h"
#include "commands/expire_args.h"
#include "commands/register.h"
#include "keyspace/lookup.h"
#include "keyspace/maxmemory.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/replicate.h"
#include "server/acl.h"
#include "server/clock.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "server/version.h"

#include <limits.h>

/* The keys of a command, and their values behind them if there are any. */
typedef struct keys {
    RedisModuleString **argv;
    int count, step;
    int64_t now_ms;
    bool sent_native; /* as a command of the server's own */
} keys;

/* Keys that are begun before the first of them is found, so that their memory arrives together. */
#define AHEAD 8

/* Begins the keys from number i, up to AHEAD of them in all, into a ring of look-ups; returns that
 * of number i. Call it for each key in turn. */
static record *begin_ahead(RedisModuleCtx *ctx, const keys *k, int i, record ring[AHEAD]) {
    int newest = i == 0 ? 0 : i + AHEAD - 1;
    for (; newest < i + AHEAD && newest < k->count; newest++)
        lookup_begin(ctx, k->argv[newest * k->step], k->now_ms, &ring[newest % AHEAD]);
    return &ring[i % AHEAD];
}

/* To look at a number makes text of it, for as long as it is there. */
static void reply_value_itself(RedisModuleCtx *ctx, RedisModuleString *name) {
    size_t len;
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ);
    if (RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_STRING) {
        const char *value = RedisModule_StringDMA(key, &len, REDISMODULE_READ);
        RedisModule_ReplyWithStringBuffer(ctx, value, len);
    } else {
        RedisModule_ReplyWithNull(ctx);
    }
    RedisModule_CloseKey(key);
}

/* Where GET has another name, or is taken away, the error is another than that of the type. */
static void reply_native_value(RedisModuleCtx *ctx, RedisModuleString *key) {
    static const char wrong_type[] = "WRONGTYPE";
    size_t len = 0;
    RedisModuleCallReply *reply = native_call(ctx, NATIVE_KEEPS_SILENT, "get", &key, 1);
    int type = reply ? RedisModule_CallReplyType(reply) : REDISMODULE_REPLY_UNKNOWN;
    if (type == REDISMODULE_REPLY_STRING) {
        native_reply(ctx, reply);
        return;
    }
    const char *error = reply ? RedisModule_CallReplyStringPtr(reply, &len) : NULL;
    bool of_type =
        len >= sizeof wrong_type - 1 && !memcmp(error, wrong_type, sizeof wrong_type - 1);
    if (type == REDISMODULE_REPLY_ERROR && !of_type)
        reply_value_itself(ctx, key);
    else
        RedisModule_ReplyWithNull(ctx);
    own_call_drop(reply);
}

int cmd_cmget(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!lookup_arrived(ctx, argv[1])) return REDISMODULE_OK;
    record ring[AHEAD];
    keys k = {argv + 1, argc - 1, 1, clock_now_ms(), native_sent(ctx)};
    RedisModule_ReplyWithArray(ctx, k.count);
    for (int i = 0; i < k.count; i++) {
        record *r = begin_ahead(ctx, &k, i, ring);
        /* As MGET: what is not a string counts as missing. */
        switch (lookup_finish_of_many(r, k.sent_native)) {
        case LOOKUP_DONE:
            record_note_read(r);
            record_reply_value(r);
            break;
        case LOOKUP_NATIVE:
            reply_native_value(ctx, r->name);
            break;
        default:
            RedisModule_ReplyWithNull(ctx);
        }
    }
    return REDISMODULE_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Whether all keys can be written. False: the error is replied, or the client held. */
static bool all_usable(RedisModuleCtx *ctx, const keys *k) {
    for (int i = 0; i < k->count; i++) {
        record r;
        lookup_answer answer = lookup_possible(ctx, k->argv[i * k->step], &r);
        if (answer == LOOKUP_NATIVE) continue;
        if (!lookup_reply_answer(&r, NULL, 0, answer) ||
            !record_may_be_of(&r, k->argv[i * k->step + 1]))
            return false;
    }
    return true;
}

/* Whether all of the records exist, or none does. All keys are usable. */
static bool all_there(RedisModuleCtx *ctx, const keys *k, bool there) {
    record ring[AHEAD];
    for (int i = 0; i < k->count; i++) {
        record *r = begin_ahead(ctx, k, i, ring);
        bool native = lookup_finish_of_many(r, k->sent_native) == LOOKUP_NATIVE;
        if ((native ? native_exists(ctx, r->name) : r->found) != there) return false;
    }
    return true;
}

/* How the server is called for a key of its own: it tells replicas itself if there is no record of
 * the key anywhere. Else they are told of all keys together, and not by this call; but what other
 * modules call within, and want told, is. */
#define CALL(tells, format) ((tells) ? "!" format : "!AR" format)

/* With an expiry: by MSETEX where there is one, as its events are not those of SET. */
static RedisModuleCallReply *call_set_at(RedisModuleCtx *ctx, bool tells, RedisModuleString *key,
                                         RedisModuleString *value, int64_t at_ms) {
    if (!version_is_redis(REDIS_8_4))
        return own_call(ctx, "set", CALL(tells, "sscl"), key, value, "PXAT", at_ms);
    return own_call(ctx, "msetex", CALL(tells, "lsscl"), 1ll, key, value, "PXAT", at_ms);
}

/* Writes over a value of the server's own. */
static void put_native(RedisModuleCtx *ctx, bool tells, RedisModuleString *key,
                       RedisModuleString *value, int64_t at_ms) {
    RedisModuleCallReply *reply =
        at_ms == EXPIRY_NEVER  ? own_call(ctx, "set", CALL(tells, "ss"), key, value)
        : at_ms == EXPIRY_KEPT ? own_call(ctx, "set", CALL(tells, "ssc"), key, value, "KEEPTTL")
                               : call_set_at(ctx, tells, key, value, at_ms);
    own_call_drop(reply);
}

static bool put(record *r, RedisModuleString *raw, int64_t at_ms) {
    size_t len;
    const char *value = RedisModule_StringPtrLen(raw, &len);
    if (!record_put(r, value, len, at_ms)) return false;
    record_notify_set_of_many(r, at_ms != EXPIRY_NEVER && at_ms != EXPIRY_KEPT);
    return true;
}

/* Writes all values and counts the records among them. False: one could not be written, for want of
 * memory, or as others who were told of one before it have changed what was usable, and that is the
 * reply: the keys are those before it, of which replicas are told. */
static bool put_all(RedisModuleCtx *ctx, keys *k, int64_t at_ms, int *records) {
    record ring[AHEAD];
    *records = 0;
    for (int i = 0; i < k->count; i++) {
        record *r = begin_ahead(ctx, k, i, ring);
        RedisModuleString *value = k->argv[i * k->step + 1];
        lookup_answer answer = lookup_finish_of_many(r, k->sent_native);
        maxmemory_permit(); /* all were asked about before the first was written */
        if (answer == LOOKUP_NATIVE) {
            put_native(ctx, lookup_is_servers_own(r->name, k->sent_native), r->name, value, at_ms);
        } else if (lookup_reply_answer(r, NULL, 0, answer) && put(r, value, at_ms)) {
            (*records)++;
        } else {
            k->count = i;
            return false;
        }
    }
    return true;
}

/* Behind what replicas are told: over a value of another type it makes a string there, too, which
 * moves in when they are told that it does. */
static void settle_native(RedisModuleCtx *ctx, const keys *k, int records) {
    for (int i = 0; i < k->count; i++) {
        RedisModuleString *key = k->argv[i * k->step];
        native_tell_left(ctx, key);
        if (records < k->count) native_take_in(ctx, key);
    }
}

/* The keys and values of CMSET and CMSETNX. False: wrong number of arguments, and that is the
 * reply. */
static bool read_pairs(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, keys *k) {
    *k = (keys){argv + 1, (argc - 1) / 2, 2, clock_now_ms(), native_sent(ctx)};
    if (argc >= 3 && argc % 2 == 1) return true;
    RedisModule_WrongArity(ctx);
    return false;
}

/* Those that the server has not told itself. */
static void replicate_pairs(RedisModuleCtx *ctx, const keys *k, int records) {
    if (!k->sent_native || records == k->count) {
        replicate_command(ctx, "CMSET", k->argv, (size_t)k->count * 2, 2);
        return;
    }
    RedisModuleString **told = RedisModule_Alloc((size_t)k->count * 2 * sizeof *told);
    size_t n = 0;
    for (int i = 0; i < k->count; i++) {
        RedisModuleString **pair = &k->argv[i * k->step];
        if (lookup_is_servers_own(pair[0], k->sent_native)) continue;
        told[n++] = pair[0];
        told[n++] = pair[1];
    }
    if (n > 0) replicate_command(ctx, "CMSET", told, n, 2);
    RedisModule_Free(told);
}

/* Writes all pairs, and tells of them together. False: the error is replied. */
static bool put_pairs(RedisModuleCtx *ctx, keys *k) {
    int records;
    bool done = put_all(ctx, k, EXPIRY_NEVER, &records);
    if (k->count == 0) return false;
    replicate_pairs(ctx, k, records);
    replicate_count(ctx, records - 1);
    settle_native(ctx, k, records);
    return done;
}

int cmd_cmset(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    keys k;
    if (!read_pairs(ctx, argv, argc, &k) || !all_usable(ctx, &k) || !put_pairs(ctx, &k))
        return REDISMODULE_OK;
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

int cmd_cmsetnx(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    keys k;
    if (!read_pairs(ctx, argv, argc, &k) || !all_usable(ctx, &k)) return REDISMODULE_OK;
    if (!all_there(ctx, &k, false)) return RedisModule_ReplyWithLongLong(ctx, 0);
    if (!put_pairs(ctx, &k)) return REDISMODULE_OK;
    return RedisModule_ReplyWithLongLong(ctx, 1);
}

/* ---- CMSETEX --------------------------------------------------------------------------------- */

typedef struct many_options {
    bool nx, xx, keep_ttl;
    int unit; /* of the expiry, -1: none is given */
    RedisModuleString *expire;
} many_options;

static bool parse_options(RedisModuleString **argv, int argc, int first, many_options *o) {
    *o = (many_options){.unit = -1};
    for (int i = first; i < argc; i++) {
        if (arg_is(argv[i], "nx") && !o->xx)
            o->nx = true;
        else if (arg_is(argv[i], "xx") && !o->nx)
            o->xx = true;
        else if (arg_is(argv[i], "keepttl") && o->unit < 0)
            o->keep_ttl = true;
        else if (o->keep_ttl || !expire_take(argv, argc, &i, &o->unit, &o->expire))
            return false;
    }
    return true;
}

/* Not of one kind, or with an expiry: record by record, which every replica understands. */
static void replicate_many(RedisModuleCtx *ctx, const keys *k, int64_t at_ms) {
    for (int i = 0; i < k->count; i++) {
        RedisModuleString **pair = &k->argv[i * k->step];
        if (lookup_is_servers_own(pair[0], k->sent_native)) continue;
        replicate_set(ctx, pair[0], pair[1], at_ms);
    }
}

/* The keys of CMSETEX; the error that there is instead, or NULL. */
static const char *read_counted(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, keys *k) {
    long long count;
    if (RedisModule_StringToLongLong(argv[1], &count) != REDISMODULE_OK || count <= 0 ||
        count > INT_MAX)
        return "ERR invalid numkeys value or out of range";
    if (count > (argc - 2) / 2) return "ERR wrong number of key-value pairs";
    *k = (keys){argv + 2, (int)count, 2, clock_now_ms(), native_sent(ctx)};
    return NULL;
}

/* What the server does where it knows all keys. False: the error is replied. */
static bool check_others(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, const keys *k) {
    if (!register_first_only()) return true;
    for (int i = 1; i < k->count; i++)
        if (!acl_may_write(ctx, argv, argc, k->argv[i * k->step])) return false;
    for (int i = 1; i < k->count; i++) {
        if (places_of_string(k->argv[i * k->step]) == places_of_string(k->argv[0])) continue;
        RedisModule_ReplyWithError(ctx, ERROR_CROSS_SLOT);
        return false;
    }
    return true;
}

/* Tells the server, which asks before it calls the command, where the keys are. */
static int report_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    keys k;
    if (argc < 4 || read_counted(ctx, argv, argc, &k)) return REDISMODULE_OK;
    for (int i = 0; i < k.count; i++)
        RedisModule_KeyAtPosWithFlags(ctx, 2 + i * k.step,
                                      REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_UPDATE);
    return REDISMODULE_OK;
}

int cmd_cmsetex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (RedisModule_IsKeysPositionRequest(ctx)) return report_keys(ctx, argv, argc);
    if (argc < 4) return RedisModule_WrongArity(ctx);
    keys k;
    many_options o;
    const char *error = read_counted(ctx, argv, argc, &k);
    if (error) return RedisModule_ReplyWithError(ctx, error);
    if (!check_others(ctx, argv, argc, &k)) return REDISMODULE_OK;
    if (!parse_options(argv, argc, 2 + k.count * 2, &o))
        return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    int64_t at_ms = o.keep_ttl ? EXPIRY_KEPT : EXPIRY_NEVER;
    if (o.unit >= 0 && !expire_read(ctx, argv[0], o.expire, o.unit, k.now_ms, true, &at_ms))
        return REDISMODULE_OK;
    if (!all_usable(ctx, &k)) return REDISMODULE_OK;
    if ((o.nx || o.xx) && !all_there(ctx, &k, o.xx)) return RedisModule_ReplyWithLongLong(ctx, 0);
    int records;
    bool done = put_all(ctx, &k, at_ms, &records);
    replicate_many(ctx, &k, at_ms);
    settle_native(ctx, &k, records);
    return done ? RedisModule_ReplyWithLongLong(ctx, 1) : REDISMODULE_OK;
}
