/* string_bytes.c: what strings of the server's own take. See string_bytes.h. */
#include "keyspace/string_bytes.h"

#include "keyspace/native_calls.h"

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
        double bytes = (double)native_memory_usage(ctx, key);
        if (bytes > 0)
            more += ASKED_WEIGHT * (bytes + TABLE_BYTES - (double)(key_len + len) - more);
    }
    return key_len + len + (size_t)more;
}
