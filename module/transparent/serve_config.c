/* serve_config.c: see serve_config.h. */
#include "transparent/serve_config.h"

#include "keyspace/maxmemory.h"
#include "keyspace/native.h"
#include "server/reply.h"
#include "transparent/serve_info.h"

#include <string.h>

/* A setting that CONFIG GET has replied. */
typedef struct pair {
    RedisModuleCallReply *name, *value;
} pair;

static bool is_map(RedisModuleCallReply *reply) {
    return RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_MAP;
}

static pair pair_at(RedisModuleCallReply *reply, size_t i) {
    pair p = {NULL, NULL};
    if (is_map(reply)) {
        RedisModule_CallReplyMapElement(reply, i, &p.name, &p.value);
    } else {
        p.name = RedisModule_CallReplyArrayElement(reply, 2 * i);
        p.value = RedisModule_CallReplyArrayElement(reply, 2 * i + 1);
    }
    return p;
}

static bool is_limit(RedisModuleCallReply *name) {
    static const char limit[] = "maxmemory";
    size_t len;
    const char *text = RedisModule_CallReplyStringPtr(name, &len);
    return text && len == strlen(limit) && !memcmp(text, limit, len);
}

static void reply_limit(RedisModuleCtx *ctx) {
    RedisModuleString *text =
        RedisModule_CreateStringFromLongLong(ctx, (long long)maxmemory_now()->wanted_limit);
    RedisModule_ReplyWithString(ctx, text);
    RedisModule_FreeString(ctx, text);
}

/* The limit of memory as it was asked for, wherever the setting stands. */
static int reply_settings(RedisModuleCtx *ctx, RedisModuleCallReply *reply) {
    size_t len = RedisModule_CallReplyLength(reply), pairs = is_map(reply) ? len : len / 2;
    if (is_map(reply))
        RedisModule_ReplyWithMap(ctx, (long)pairs);
    else
        RedisModule_ReplyWithArray(ctx, (long)(2 * pairs));
    for (size_t i = 0; i < pairs; i++) {
        pair p = pair_at(reply, i);
        RedisModule_ReplyWithCallReply(ctx, p.name);
        if (is_limit(p.name))
            reply_limit(ctx);
        else
            RedisModule_ReplyWithCallReply(ctx, p.value);
    }
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

int serve_config(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    RedisModuleCallReply *reply =
        native_call(ctx, NATIVE_KEEPS_SILENT, "config", argv + 1, (size_t)argc - 1);
    if (!reply || RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_ERROR)
        return native_reply(ctx, reply);
    if (arg_is(argv[1], "get")) return reply_settings(ctx, reply);
    serve_info_reset();
    return native_reply(ctx, reply);
}
