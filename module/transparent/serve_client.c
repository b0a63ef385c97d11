/* serve_client.c: see serve_client.h. */
#include "transparent/serve_client.h"

#include "keyspace/native.h"
#include "server/pause.h"

int serve_client(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    RedisModuleCallReply *reply =
        native_call(ctx, NATIVE_KEEPS_SILENT, "client", argv + 1, (size_t)argc - 1);
    pause_look(ctx);
    return native_reply(ctx, reply);
}
