/* cmd_string.c: CSET, CGET and their kin, as Redis' SET and GET. */
#include "commands.h"
#include "expire_args.h"
#include "keyspace.h"
#include "reply.h"

#include <string.h>

/* ---- CSET ------------------------------------------------------------------------------- */

typedef struct set_options {
    bool nx, xx, get, keep_ttl;
    int unit;                  /* of the expiry, -1: none is given */
    RedisModuleString *expire; /* its number */
} set_options;

/* False: a syntax error. */
static bool parse_set(RedisModuleString **argv, int argc, set_options *o) {
    *o = (set_options){.unit = -1};
    for (int i = 3; i < argc; i++) {
        int unit = time_option(argv[i]);
        if (arg_is(argv[i], "nx") && !o->xx)
            o->nx = true;
        else if (arg_is(argv[i], "xx") && !o->nx)
            o->xx = true;
        else if (arg_is(argv[i], "get"))
            o->get = true;
        else if (arg_is(argv[i], "keepttl") && o->unit < 0)
            o->keep_ttl = true;
        else if (unit >= 0 && o->unit < 0 && !o->keep_ttl && i + 1 < argc) {
            o->unit = unit;
            o->expire = argv[++i];
        } else {
            return false;
        }
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
    if (argc == 3)
        RedisModule_ReplicateVerbatim(ctx);
    else if (o->unit >= 0)
        RedisModule_Replicate(ctx, "CSET", "sssl", argv[1], argv[2], constant(&pxat, "PXAT"),
                              (long long)at_ms);
    else if (o->keep_ttl)
        RedisModule_Replicate(ctx, "CSET", "sss", argv[1], argv[2], constant(&keep_ttl, "KEEPTTL"));
    else
        RedisModule_Replicate(ctx, "CSET", "ss", argv[1], argv[2]);
}

int cmd_cset(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RedisModule_WrongArity(ctx);
    set_options o;
    if (!parse_set(argv, argc, &o)) return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    int64_t at_ms = EXPIRY_NEVER, now_ms = ckv_now_ms();
    if (o.unit >= 0 && !time_read(ctx, argv[0], o.expire, o.unit, now_ms, true, &at_ms))
        return REDISMODULE_OK;
    lookup l;
    size_t len;
    codec_value encoded;
    const char *value = RedisModule_StringPtrLen(argv[2], &len);
    keyspace_begin(ctx, argv[1], now_ms, &l);
    if (!codec_encode_new(&ckv.codecs, value, len, &encoded))
        return RedisModule_ReplyWithError(ctx, ERROR_MEMORY);
    if (!keyspace_find_begun(&l)) return RedisModule_ReplyWithError(ctx, ERROR_TYPE);
    bool refused = (o.nx && l.found) || (o.xx && !l.found);
    if (o.get && !keyspace_reply_value(&l))
        refused = true;
    else if (!o.get && refused)
        RedisModule_ReplyWithNull(ctx);
    if (!refused) {
        bool done = o.keep_ttl ? keyspace_put_encoded_keeping_expiry(&l, &encoded)
                               : keyspace_put_encoded(&l, &encoded, at_ms);
        if (done) {
            replicate_set(ctx, argv, argc, &o, at_ms);
            keyspace_notify(&l, REDISMODULE_NOTIFY_STRING, "set");
            if (o.unit >= 0) keyspace_notify(&l, REDISMODULE_NOTIFY_GENERIC, "expire");
            if (!o.get) RedisModule_ReplyWithSimpleString(ctx, "OK");
        }
    }
    return REDISMODULE_OK;
}

/* ---- reading ------------------------------------------------------------------------------ */

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

/* ---- several keys ---------------------------------------------------------------------------- */

/* Keys that are begun before the first of them is found, so that their memory arrives together. */
#define AHEAD 8

/* Begins the keys argv[i], argv[i + step] … up to AHEAD of them in all, into a ring of look-ups.
 * Call it before each key is found. */
static void begin_ahead(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int step, int i,
                        int64_t now_ms, lookup ring[AHEAD]) {
    int key = (i - 1) / step, newest = i == 1 ? 0 : key + AHEAD - 1;
    for (; newest < key + AHEAD && 1 + newest * step < argc; newest++)
        keyspace_begin(ctx, argv[1 + newest * step], now_ms, &ring[newest % AHEAD]);
}

int cmd_cmget(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    lookup ring[AHEAD];
    int64_t now_ms = ckv_now_ms();
    RedisModule_ReplyWithArray(ctx, argc - 1);
    for (int i = 1; i < argc; i++) {
        begin_ahead(ctx, argv, argc, 1, i, now_ms, ring);
        lookup *l = &ring[(i - 1) % AHEAD];
        /* As MGET: what is not a string counts as missing. */
        if (!keyspace_find_begun(l)) {
            RedisModule_ReplyWithNull(ctx);
            continue;
        }
        keyspace_note_read(l);
        keyspace_reply_value(l);
    }
    return REDISMODULE_OK;
}

int cmd_cmset(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3 || argc % 2 == 0) return RedisModule_WrongArity(ctx);
    lookup ring[AHEAD];
    int64_t now_ms = ckv_now_ms();
    for (int i = 1; i < argc; i += 2) {
        begin_ahead(ctx, argv, argc, 2, i, now_ms, ring);
        lookup *l = &ring[(i - 1) / 2 % AHEAD];
        if (!keyspace_find_begun(l)) return RedisModule_ReplyWithError(ctx, ERROR_TYPE);
        size_t len;
        const char *value = RedisModule_StringPtrLen(argv[i + 1], &len);
        if (!keyspace_put(l, value, len, EXPIRY_NEVER)) return REDISMODULE_OK;
        keyspace_notify(l, REDISMODULE_NOTIFY_STRING, "set");
    }
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}
