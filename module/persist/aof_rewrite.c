/* aof_rewrite.c: a map as commands. See aof_rewrite.h. */
#include "persist/aof_rewrite.h"

#include "keyspace/maps.h"

typedef struct rewriting {
    RedisModuleIO *io;
    map *m;
} rewriting;

static bool emit(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    const rewriting *w = context;
    size_t len;
    const uint8_t *value = map_value(w->m, pos, &len);
    int64_t at_ms = map_expiry_ms(pos);
    if (!value) return true; /* damaged beyond reading: there is nothing to write */
    if (at_ms == EXPIRY_NEVER)
        RedisModule_EmitAOF(w->io, "CSET", "bb", key, key_len, value, len);
    else
        RedisModule_EmitAOF(w->io, "CSET", "bbcl", key, key_len, value, len, "PXAT",
                            (long long)(at_ms > 0 ? at_ms : 1));
    return true;
}

void aof_rewrite_map(RedisModuleIO *io, RedisModuleString *key, void *value) {
    (void)key;
    rewriting w = {io, ((keyed_map *)value)->m};
    for (uint32_t i = 0; i < w.m->buckets; i++) map_each(w.m, i, emit, &w);
}
