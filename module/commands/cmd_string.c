/* cmd_string.c: CSET, CGET and their kin, as Redis' SET and GET. */
#include "server/acl.h"
#include "commands/commands.h"
#include "commands/condition.h"
#include "commands/expire_args.h"
#include "server/feed.h"
#include "keyspace/lookup.h"
#include "server/reply.h"

#include <string.h>

/* ---- CSET ------------------------------------------------------------------------------------ */

typedef struct set_options {
    bool nx, xx, get, keep_ttl;
    condition condition;
    int unit;                  /* of the expiry, -1: none is given */
    RedisModuleString *expire; /* its number */
} set_options;

/* False: a syntax error. */
static bool parse_set(RedisModuleString **argv, int argc, set_options *o) {
    *o = (set_options){.unit = -1};
    for (int i = 3; i < argc; i++) {
        int unit = time_option(argv[i]);
        bool may_compare = !o->nx && !o->xx && !o->condition.value && i + 1 < argc;
        if (unit >= 0 && o->unit < 0 && !o->keep_ttl && i + 1 < argc) {
            o->unit = unit;
            o->expire = argv[++i];
        } else if (arg_is(argv[i], "nx") && !o->xx && !o->condition.value)
            o->nx = true;
        else if (arg_is(argv[i], "xx") && !o->nx && !o->condition.value)
            o->xx = true;
        else if (may_compare && condition_word(argv[i], &o->condition))
            o->condition.value = argv[++i];
        else if (arg_is(argv[i], "get"))
            o->get = true;
        else if (arg_is(argv[i], "keepttl") && o->unit < 0)
            o->keep_ttl = true;
        else
            return false;
    }
    return true;
}

/* A word that is sent again and again. */
static RedisModuleString *constant(RedisModuleString **kept, const char *word) {
    if (!*kept) *kept = RedisModule_CreateString(NULL, word, strlen(word));
    return *kept;
}

/* The write as it goes to replicas and AOF: with an absolute time, without conditions. */
static void replicate_set(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                          const set_options *o, int64_t at_ms) {
    static RedisModuleString *pxat, *keep_ttl;
    if (argc == 3 || !feed_needed())
        RedisModule_ReplicateVerbatim(ctx);
    else if (o->unit >= 0)
        RedisModule_Replicate(ctx, "CSET", "sssl", argv[1], argv[2], constant(&pxat, "PXAT"),
                              (long long)at_ms);
    else if (o->keep_ttl)
        RedisModule_Replicate(ctx, "CSET", "sss", argv[1], argv[2], constant(&keep_ttl, "KEEPTTL"));
    else
        RedisModule_Replicate(ctx, "CSET", "ss", argv[1], argv[2]);
}

/* Whether the options let the record be written. False: the value is damaged, and that is the
 * reply. */
static bool may_write(const set_options *o, lookup *l, bool *may) {
    *may = !(o->nx && l->found) && !(o->xx && !l->found);
    return !o->condition.value || condition_check(&o->condition, l, may);
}

/* Writes the record, tells everybody and replies. */
static int set(RedisModuleString **argv, int argc, const set_options *o, lookup *l,
               const codec_value *value, int64_t at_ms) {
    bool may;
    if (!may_write(o, l, &may)) return REDISMODULE_OK;
    if (o->get && !keyspace_reply_value(l)) return REDISMODULE_OK;
    if (!may) return o->get ? REDISMODULE_OK : RedisModule_ReplyWithNull(l->ctx);
    bool done = o->keep_ttl ? keyspace_put_encoded_keeping_expiry(l, value)
                            : keyspace_put_encoded(l, value, at_ms);
    if (!done) return REDISMODULE_OK;
    replicate_set(l->ctx, argv, argc, o, at_ms);
    keyspace_notify(l, REDISMODULE_NOTIFY_STRING, "set");
    if (o->unit >= 0) keyspace_notify(l, REDISMODULE_NOTIFY_GENERIC, "expire");
    return o->get ? REDISMODULE_OK : RedisModule_ReplyWithSimpleString(l->ctx, "OK");
}

int cmd_cset(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RedisModule_WrongArity(ctx);
    set_options o;
    if (!parse_set(argv, argc, &o)) return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    /* Its key counts as written only, so the server has not asked whether the user may read it. */
    if ((o.get || o.condition.value) && !acl_may_read(ctx, argv, argc, argv[1]))
        return REDISMODULE_OK;
    int64_t at_ms = EXPIRY_NEVER, now_ms = ckv_now_ms();
    if (o.unit >= 0 && !time_read(ctx, argv[0], o.expire, o.unit, now_ms, true, &at_ms))
        return REDISMODULE_OK;
    lookup l;
    size_t len;
    codec_value encoded;
    const char *value = RedisModule_StringPtrLen(argv[2], &len);
    keyspace_begin(ctx, argv[1], now_ms, &l);
    if (!map_encode(&ckv.shared, value, len, &encoded))
        return RedisModule_ReplyWithError(ctx, ERROR_MEMORY);
    if (!keyspace_find_begun(&l)) return RedisModule_ReplyWithError(ctx, l.error);
    return set(argv, argc, &o, &l, &encoded, at_ms);
}

/* ---- reading --------------------------------------------------------------------------------- */

int cmd_cget(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    lookup l;
    if (!keyspace_find(ctx, argv[1], ckv_now_ms(), &l)) return REDISMODULE_OK;
    keyspace_note_read(&l);
    keyspace_reply_value(&l);
    return REDISMODULE_OK;
}

int cmd_cstrlen(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    lookup l;
    if (!keyspace_find(ctx, argv[1], ckv_now_ms(), &l)) return REDISMODULE_OK;
    keyspace_note_read(&l);
    size_t len = l.found ? map_value_len(l.stored->m, &l.pos) : 0;
    RedisModule_ReplyWithLongLong(ctx, (long long)len);
    return REDISMODULE_OK;
}
