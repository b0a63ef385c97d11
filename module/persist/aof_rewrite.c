/* aof_rewrite.c: a map as commands. See aof_rewrite.h. */
#include "persist/aof_rewrite.h"

#include "keyspace/maps.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "server/own_call.h"

typedef struct rewriting {
    RedisModuleIO *io;
    map *m;
    bool in_place; /* what is in a map is to be there when the file is loaded */
} rewriting;

static bool into_file, told_prefixes;

void aof_rewrite_began(void) {
    into_file = true;
    told_prefixes = false;
}

void aof_rewrite_ended(void) {
    into_file = false;
}

static bool emit(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    const rewriting *w = context;
    size_t len;
    const uint8_t *value = map_value(w->m, pos, &len);
    if (!value) return true; /* damaged beyond reading: there is nothing to write */
    /* Under a prefix, what a server without the module would have written; a time as it is told to
     * who asks there. A record is never to expire before its own. */
    bool plain = !w->in_place && prefixes_match((const char *)key, key_len) != PREFIX_NONE;
    const char *command = plain ? "SET" : "CSET";
    int64_t at_ms = plain ? map_expiry_told_ms(pos) : map_expiry_ms(pos);
    if (at_ms == EXPIRY_NEVER)
        RedisModule_EmitAOF(w->io, command, "bb", key, key_len, value, len);
    else
        RedisModule_EmitAOF(w->io, command, "bbcl", key, key_len, value, len, "PXAT",
                            (long long)(at_ms > 0 ? at_ms : 1));
    return true;
}

/* Or they would be out of reach where the setting has been forgotten. */
static void tell_prefixes(RedisModuleIO *io) {
    if (told_prefixes || !prefixes_any()) return;
    told_prefixes = true;
    char *all = prefixes_all();
    RedisModule_EmitAOF(io, "CPREFIXES", "c", all);
    RedisModule_Free(all);
}

/* An inert map is not a set of records to whoever loads the file either: it goes as a whole. */
static void emit_whole(RedisModuleIO *io, RedisModuleString *key) {
    RedisModule_SelectDb(ckv.ctx, RedisModule_GetDbIdFromIO(io));
    if (native_has_expired(ckv.ctx, key))
        return; /* DUMP would delete what is about to be written */
    /* Replicas in a cluster, and all of its nodes while it is down, would refuse the call. This is
     * for the child alone, which asks for nothing else. */
    if (RedisModule_GetContextFlags(ckv.ctx) & REDISMODULE_CTX_FLAGS_IS_CHILD)
        RedisModule_SetClusterFlags(ckv.ctx, REDISMODULE_CLUSTER_FLAG_NO_REDIRECTION);
    RedisModuleCallReply *reply = own_call(ckv.ctx, "dump", "s", key);
    size_t len;
    if (reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_STRING) {
        const char *payload = RedisModule_CallReplyStringPtr(reply, &len);
        RedisModule_EmitAOF(io, "RESTORE", "slb", key, 0LL, payload, len);
    } else {
        ckv_log("warning", "the AOF is without the map '%.128s': the server would not DUMP it",
                RedisModule_StringPtrLen(key, NULL));
    }
    own_call_drop(reply);
}

void aof_rewrite_map(RedisModuleIO *io, RedisModuleString *key, void *value) {
    const keyed_map *s = value;
    rewriting w = {io, s->m, into_file && places_are_slots()};
    if (s->home == PLACES_NONE || s->home != places_of_name(key)) {
        emit_whole(io, key);
        return;
    }
    if (w.in_place) tell_prefixes(io);
    map_each_record(w.m, emit, &w);
}
