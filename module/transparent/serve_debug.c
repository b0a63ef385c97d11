/* serve_debug.c: DEBUG DIGEST. See serve_debug.h. */
#include "transparent/serve_debug.h"

#include "background/active_expiry.h"
#include "core/base/siphash.h"
#include "keyspace/maps.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "server/own_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 3 /* of a digest, 64 bits each */

typedef struct digest {
    uint64_t words[WORDS];
    RedisModuleCtx *ctx;
    map *from; /* the map whose records are added */
} digest;

/* Adds one key: its hash, whatever came before it. */
static void add(digest *d, const char *key, size_t key_len, const char *kind, const char *value,
                size_t len, bool expires) {
    int db = RedisModule_GetSelectedDb(d->ctx);
    RedisModuleString *all =
        RedisModule_CreateStringPrintf(NULL, "%d %zu %d %s ", db, key_len, expires, kind);
    RedisModule_StringAppendBuffer(NULL, all, key, key_len);
    RedisModule_StringAppendBuffer(NULL, all, value, len);
    size_t n;
    const char *bytes = RedisModule_StringPtrLen(all, &n);
    for (uint64_t i = 0; i < WORDS; i++) {
        const uint64_t secret[2] = {i, 0};
        d->words[i] ^= siphash13(bytes, n, secret);
    }
    RedisModule_FreeString(NULL, all);
}

static bool add_record(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    digest *d = context;
    size_t len;
    const uint8_t *value = map_value(d->from, pos, &len);
    if (value)
        add(d, (const char *)key, key_len, "string", (const char *)value, len,
            map_expiry_ms(pos) != EXPIRY_NEVER);
    return true;
}

static void add_map(digest *d, map *m) {
    d->from = m;
    map_each_record(m, add_record, d);
}

/* What the server says of a value of another type, and of whether it expires. */
static void add_other(digest *d, RedisModuleString *name, const char *key, size_t key_len) {
    RedisModuleCallReply *reply = own_call(d->ctx, "debug", "cs", "DIGEST-VALUE", name);
    RedisModuleCallReply *first = reply ? RedisModule_CallReplyArrayElement(reply, 0) : NULL;
    size_t len = 0;
    const char *text = first ? RedisModule_CallReplyStringPtr(first, &len) : NULL;
    add(d, key, key_len, "other", text ? text : "", text ? len : 0, false);
    own_call_drop(reply);
}

static void add_key(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleKey *key,
                    void *context) {
    digest *d = context;
    size_t key_len, len;
    const char *bytes = RedisModule_StringPtrLen(name, &key_len);
    (void)ctx;
    if (!key) return;
    if (RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_STRING) {
        const char *value = RedisModule_StringDMA(key, &len, REDISMODULE_READ);
        bool expires = RedisModule_GetAbsExpire(key) != REDISMODULE_NO_EXPIRE;
        add(d, bytes, key_len, "string", value, len, expires);
        return;
    }
    bool is_map = RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_MODULE &&
                  RedisModule_ModuleTypeGetType(key) == ckv.type;
    const keyed_map *s = is_map ? RedisModule_ModuleTypeGetValue(key) : NULL;
    if (!s || s->place == PLACES_NONE) add_other(d, name, bytes, key_len);
}

static int set_active_expire(RedisModuleCtx *ctx, RedisModuleString **argv) {
    RedisModuleCallReply *reply = native_call(ctx, NATIVE_KEEPS_SILENT, "debug", argv + 1, 2);
    if (reply && RedisModule_CallReplyType(reply) != REDISMODULE_REPLY_ERROR)
        active_expiry_enable(atoi(RedisModule_StringPtrLen(argv[2], NULL)) != 0);
    return native_reply(ctx, reply);
}

int serve_debug(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc == 3) return set_active_expire(ctx, argv);
    digest d = {.ctx = ctx};
    int selected = RedisModule_GetSelectedDb(ctx);
    for (int db = 0; RedisModule_SelectDb(ctx, db) == REDISMODULE_OK; db++) {
        RedisModuleScanCursor *cursor = RedisModule_ScanCursorCreate();
        while (RedisModule_Scan(ctx, cursor, add_key, &d)) continue;
        RedisModule_ScanCursorDestroy(cursor);
        /* Redis 8.4 scans no slots that are another node's by now, but digests them. */
        for (uint32_t place = 0; place < ckv.places; place++) {
            const keyed_map *s = maps_at(db, place);
            if (s) add_map(&d, s->m);
        }
    }
    RedisModule_SelectDb(ctx, selected);
    char text[41];
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64 "%08" PRIx64, d.words[0], d.words[1],
             d.words[2] & UINT32_MAX);
    return RedisModule_ReplyWithSimpleString(ctx, text);
}
