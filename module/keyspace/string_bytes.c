/* string_bytes.c: what strings of the server's own take. See string_bytes.h. */
#include "keyspace/string_bytes.h"

/* Bytes that a string takes in the table of keys, which MEMORY USAGE does not count. */
#define TABLE_BYTES 12
/* Every so many strings the server is asked. */
#define ASKED_EVERY  32
#define ASKED_WEIGHT 0.1

size_t string_bytes(RedisModuleCtx *ctx, RedisModuleString *key, size_t len) {
    static double more = 64; /* than key and value */
    static unsigned count;
    size_t key_len;
    RedisModule_StringPtrLen(key, &key_len);
    if (count++ % ASKED_EVERY == 0) {
        RedisModuleCallReply *reply = RedisModule_Call(ctx, "MEMORY", "cs", "USAGE", key);
        if (reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_INTEGER) {
            double bytes = (double)RedisModule_CallReplyInteger(reply) + TABLE_BYTES;
            more += ASKED_WEIGHT * (bytes - (double)(key_len + len) - more);
        }
        if (reply) RedisModule_FreeCallReply(reply);
    }
    return key_len + len + (size_t)more;
}
