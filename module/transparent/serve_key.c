/* serve_key.c: commands about a key. See serve_key.h. */
#include "transparent/serve_key.h"

#include "keyspace/lookup.h"
#include "keyspace/move.h"
#include "keyspace/native.h"
#include "keyspace/replicate.h"
#include "server/clock.h"

int serve_type(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    return RedisModule_ReplyWithSimpleString(ctx, r.found ? "string" : "none");
}

static int lend(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, RedisModuleString *key) {
    bool lent = key && move_out(ctx, key);
    native_run(ctx, argv, argc);
    if (lent) move_in(ctx, key);
    return REDISMODULE_OK;
}

int serve_first(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return lend(ctx, argv, argc, argv[1]);
}

int serve_second(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return lend(ctx, argv, argc, argc > 2 ? argv[2] : NULL);
}

int serve_move_out(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    bool moved = move_out(ctx, argv[1]);
    replicate_move_out(ctx, argv[1]); /* it may have moved when an AOF could not be told */
    return RedisModule_ReplyWithLongLong(ctx, moved);
}
