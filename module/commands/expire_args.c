/* expire_args.c: reading expiry times. See expire_args.h. */
#include "commands/expire_args.h"

#include "core/base/expiry.h"
#include "server/reply.h"

int expire_option(RedisModuleString *word) {
    if (arg_is(word, "ex")) return EXPIRE_SECONDS;
    if (arg_is(word, "px")) return 0;
    if (arg_is(word, "exat")) return EXPIRE_SECONDS | EXPIRE_ABSOLUTE;
    if (arg_is(word, "pxat")) return EXPIRE_ABSOLUTE;
    return -1;
}

bool expire_take(RedisModuleString **argv, int argc, int *i, int *unit,
                 RedisModuleString **number) {
    int named = expire_option(argv[*i]);
    if (named < 0 || (*unit >= 0 && *unit != named) || *i + 1 >= argc) return false;
    *unit = named;
    *number = argv[++*i];
    return true;
}

bool expire_read(RedisModuleCtx *ctx, RedisModuleString *command, RedisModuleString *number,
                 int unit, int64_t now_ms, bool positive, int64_t *at_ms) {
    long long n;
    if (RedisModule_StringToLongLong(number, &n) != REDISMODULE_OK) {
        RedisModule_ReplyWithError(ctx, ERROR_INTEGER);
        return false;
    }
    int64_t ms = n, at;
    bool bad = positive && n <= 0;
    if (unit & EXPIRE_SECONDS) bad |= __builtin_mul_overflow(n, (int64_t)1000, &ms);
    at = ms;
    if (!(unit & EXPIRE_ABSOLUTE)) bad |= __builtin_add_overflow(ms, now_ms, &at);
    if (bad) {
        reply_invalid_expire(ctx, command);
        return false;
    }
    *at_ms = at < now_ms + EXPIRY_TTL_MAX_MS ? at : now_ms + EXPIRY_TTL_MAX_MS;
    return true;
}
