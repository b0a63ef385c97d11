/* replicate.c: what replicas and the AOF are told. See replicate.h. */
#include "keyspace/replicate.h"

#include "server/feed.h"

#include <string.h>

/* Words that go with every write are made once. */
static RedisModuleString *word(RedisModuleString **kept, const char *text) {
    if (!*kept) *kept = RedisModule_CreateString(NULL, text, strlen(text));
    return *kept;
}

/* Making the arguments is a tenth of what a short CSET takes: not where they go nowhere. */
static bool goes_nowhere(RedisModuleCtx *ctx) {
    if (feed_needed()) return false;
    RedisModule_ReplicateVerbatim(ctx); /* it counts as a change all the same */
    return true;
}

void replicate_set(RedisModuleCtx *ctx, RedisModuleString *key, RedisModuleString *value,
                   int64_t at_ms) {
    static RedisModuleString *pxat;
    if (goes_nowhere(ctx)) return;
    if (at_ms == EXPIRY_NEVER)
        RedisModule_Replicate(ctx, "CSET", "ss", key, value);
    else
        RedisModule_Replicate(ctx, "CSET", "sssl", key, value, word(&pxat, "PXAT"),
                              (long long)at_ms);
}

void replicate_set_keeping_expiry(RedisModuleCtx *ctx, RedisModuleString *key,
                                  RedisModuleString *value) {
    static RedisModuleString *keep_ttl;
    if (goes_nowhere(ctx)) return;
    RedisModule_Replicate(ctx, "CSET", "sss", key, value, word(&keep_ttl, "KEEPTTL"));
}

void replicate_delete(RedisModuleCtx *ctx, RedisModuleString *const *keys, size_t count) {
    RedisModule_Replicate(ctx, "CDEL", "v", keys, count);
}

void replicate_expiry(RedisModuleCtx *ctx, RedisModuleString *key, int64_t at_ms) {
    RedisModule_Replicate(ctx, "CPEXPIREAT", "sl", key, (long long)at_ms);
}

void replicate_persist(RedisModuleCtx *ctx, RedisModuleString *key) {
    RedisModule_Replicate(ctx, "CPERSIST", "s", key);
}
