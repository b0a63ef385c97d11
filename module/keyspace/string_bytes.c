/* string_bytes.c: what strings of the server's own take. See string_bytes.h. */
#include "keyspace/string_bytes.h"

#include "keyspace/native_memory.h"
#include "server/version.h"

/* Bytes that a string takes in the table of keys, which MEMORY USAGE does not count. */
#define TABLE_BYTES 12
/* Every so many strings the server is asked, where it may be. */
#define ASKED_EVERY  32
#define ASKED_WEIGHT 0.1

/* Valkey keeps a key within the object of its value from 8.1 on, which says of such as long as
 * these (bytes) what they take without it. */
#define APART_MIN 45
#define KEY_EXTRA 5

static bool by_timer;

void string_bytes_by_timer(bool by) {
    by_timer = by;
}

static double usage(RedisModuleCtx *ctx, RedisModuleString *key, size_t key_len, size_t len) {
    double bytes = (double)native_memory_usage(ctx, key);
    bool without_key =
        len >= APART_MIN && version_is_valkey(VALKEY_8_1) && !version_is_valkey(VALKEY_9_0);
    return without_key && bytes > 0 ? bytes + (double)(key_len + KEY_EXTRA) : bytes;
}

size_t string_bytes(RedisModuleCtx *ctx, RedisModuleString *key, size_t len) {
    static double more = 64; /* than key and value */
    static unsigned count;
    size_t key_len;
    RedisModule_StringPtrLen(key, &key_len);
    if (by_timer && count++ % ASKED_EVERY == 0) {
        double bytes = usage(ctx, key, key_len, len);
        if (bytes > 0)
            more += ASKED_WEIGHT * (bytes + TABLE_BYTES - (double)(key_len + len) - more);
    }
    return key_len + len + (size_t)more;
}
