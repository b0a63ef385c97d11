/* serve_lists.c: SCAN, KEYS, RANDOMKEY. See serve_lists.h. */
#include "transparent/serve_lists.h"

#include "keyspace/maps.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "server/acl.h"
#include "server/reply.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS (1ULL << 50) /* in a cursor */
#define FIRST   (1ULL << 51)
/* Keys that are drawn before it is said that there are only maps. */
#define TRIES 100

/* Whether a key that the server has told of is one that it would have without ckv. */
static bool is_users(RedisModuleCtx *ctx, RedisModuleString *key) {
    uint32_t place = places_of_name(key);
    return place == MAPS_NO_PLACE || !maps_at(RedisModule_GetSelectedDb(ctx), place);
}

static bool is_served(RedisModuleCtx *ctx, RedisModuleString *key) {
    (void)ctx;
    return prefixes_match_name(key) != PREFIX_NONE;
}

/* Replies those keys of an array that are wanted, into an array that is begun; returns how many. */
static long reply_wanted(RedisModuleCtx *ctx, RedisModuleCallReply *keys,
                         bool (*wanted)(RedisModuleCtx *, RedisModuleString *)) {
    long replied = 0;
    size_t n = keys ? RedisModule_CallReplyLength(keys) : 0;
    for (size_t i = 0; i < n; i++) {
        RedisModuleString *key =
            RedisModule_CreateStringFromCallReply(RedisModule_CallReplyArrayElement(keys, i));
        if (!key) continue;
        if (wanted(ctx, key)) {
            RedisModule_ReplyWithString(ctx, key);
            replied++;
        }
        RedisModule_FreeString(ctx, key);
    }
    return replied;
}

static bool is_array(RedisModuleCallReply *reply) {
    return reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_ARRAY;
}

/* Calls the server's own command or ours. Whoever may list the server's keys may list them all. */
static RedisModuleCallReply *list(RedisModuleCtx *ctx, const char *command,
                                  RedisModuleString *first, RedisModuleString **more,
                                  size_t count) {
    acl_trust(true);
    RedisModuleCallReply *reply = RedisModule_Call(ctx, command, "Esv", first, more, count);
    acl_trust(false);
    return reply;
}

/* ---- SCAN ------------------------------------------------------------------------------------ */

static uint64_t cursor_of(RedisModuleCallReply *scanned) {
    size_t len;
    char text[24] = "";
    const char *told =
        RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(scanned, 0), &len);
    if (told && len < sizeof text) memcpy(text, told, len);
    return strtoull(text, NULL, 10);
}

/* What one call tells: of one kind of keys, or of the last of a kind and the first of the next.
 * NULL: nothing. */
typedef struct scanned {
    RedisModuleCallReply *first, *own, *last;
} scanned;

/* Of the kind that it has come to. */
static uint64_t next_cursor(const scanned *s) {
    uint64_t cursor = cursor_of(s->last ? s->last : s->own ? s->own : s->first);
    if (cursor == 0 || (s->own && !s->last)) return cursor;
    return cursor | RECORDS | (s->last ? 0 : FIRST);
}

static long reply_keys(RedisModuleCtx *ctx, RedisModuleCallReply *scanned,
                       bool (*wanted)(RedisModuleCtx *, RedisModuleString *)) {
    return scanned ? reply_wanted(ctx, RedisModule_CallReplyArrayElement(scanned, 1), wanted) : 0;
}

static int reply_scan(RedisModuleCtx *ctx, const scanned *s) {
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModuleString *text = RedisModule_CreateStringPrintf(ctx, "%" PRIu64, next_cursor(s));
    RedisModule_ReplyWithString(ctx, text);
    RedisModule_FreeString(ctx, text);
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    long replied = reply_keys(ctx, s->first, is_served);
    replied += reply_keys(ctx, s->own, is_users);
    replied += reply_keys(ctx, s->last, is_served);
    RedisModule_ReplySetArrayLength(ctx, replied);
    return REDISMODULE_OK;
}

static RedisModuleCallReply *scan_records(RedisModuleCtx *ctx, uint64_t cursor,
                                          RedisModuleString **argv, int argc) {
    RedisModuleString *at = RedisModule_CreateStringPrintf(ctx, "%" PRIu64, cursor);
    RedisModuleCallReply *reply = list(ctx, "CSCAN", at, argv + 2, (size_t)argc - 2);
    RedisModule_FreeString(ctx, at);
    return reply;
}

static void free_scanned(scanned *s) {
    if (s->first) RedisModule_FreeCallReply(s->first);
    if (s->own) RedisModule_FreeCallReply(s->own);
    if (s->last) RedisModule_FreeCallReply(s->last);
}

/* Goes on from a cursor; returns the kind of keys that it begins with. */
static RedisModuleCallReply *scan(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                  scanned *s) {
    const char *given = RedisModule_StringPtrLen(argv[1], NULL);
    uint64_t cursor = strtoull(given, NULL, 10), at = cursor & (RECORDS - 1);
    bool ours = *given >= '0' && *given <= '9' && cursor & RECORDS && cursor < 2 * FIRST;
    if (ours && !(cursor & FIRST)) return s->last = scan_records(ctx, at, argv, argc);
    if (ours || (arg_is(argv[1], "0") && prefixes_any_in(PREFIX_LEAVING)))
        s->first = scan_records(ctx, at, argv, argc);
    else
        s->own = list(ctx, "SCAN", argv[1], argv + 2, (size_t)argc - 2);
    return s->first ? s->first : s->own;
}

int serve_scan(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    scanned s = {NULL, NULL, NULL};
    RedisModuleCallReply *begun = scan(ctx, argv, argc, &s);
    if (!is_array(begun)) return native_reply(ctx, begun);
    if (s.first && cursor_of(s.first) == 0) {
        RedisModuleString *start = RedisModule_CreateString(ctx, "0", 1);
        s.own = list(ctx, "SCAN", start, argv + 2, (size_t)argc - 2);
        RedisModule_FreeString(ctx, start);
    }
    if (s.own && cursor_of(s.own) == 0) s.last = scan_records(ctx, 0, argv, argc);
    reply_scan(ctx, &s);
    free_scanned(&s);
    return REDISMODULE_OK;
}

/* ---- KEYS ------------------------------------------------------------------------------------ */

int serve_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argc;
    RedisModuleCallReply *own = list(ctx, "KEYS", argv[1], NULL, 0);
    if (!is_array(own)) return native_reply(ctx, own);
    RedisModuleCallReply *records = list(ctx, "CKEYS", argv[1], NULL, 0);
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    long replied = reply_wanted(ctx, own, is_users);
    if (is_array(records)) replied += reply_wanted(ctx, records, is_served);
    RedisModule_ReplySetArrayLength(ctx, replied);
    RedisModule_FreeCallReply(own);
    if (records) RedisModule_FreeCallReply(records);
    return REDISMODULE_OK;
}

/* ---- RANDOMKEY ------------------------------------------------------------------------------- */

static RedisModuleString *draw_own(RedisModuleCtx *ctx) {
    for (int i = 0; i < TRIES && native_count(ctx) > 0; i++) {
        RedisModuleString *key = RedisModule_RandomKey(ctx);
        if (!key || is_users(ctx, key)) return key;
        RedisModule_FreeString(ctx, key);
    }
    return NULL;
}

static RedisModuleString *draw_record(RedisModuleCtx *ctx) {
    RedisModuleString *key = NULL;
    for (int i = 0; i < TRIES && !key; i++) {
        acl_trust(true);
        RedisModuleCallReply *reply = RedisModule_Call(ctx, "CRANDOMKEY", "");
        acl_trust(false);
        key = reply ? RedisModule_CreateStringFromCallReply(reply) : NULL;
        if (reply) RedisModule_FreeCallReply(reply);
        if (!key) return NULL;
        if (is_served(ctx, key)) return key;
        RedisModule_FreeString(ctx, key);
        key = NULL;
    }
    return NULL;
}

int serve_randomkey(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    uint64_t own = native_count(ctx);
    uint64_t records = maps_totals_of(RedisModule_GetSelectedDb(ctx)).totals.records, random = 0;
    RedisModule_GetRandomBytes((unsigned char *)&random, sizeof random);
    bool from_records = own + records > 0 && random % (own + records) < records;
    RedisModuleString *key = from_records ? draw_record(ctx) : draw_own(ctx);
    if (!key) key = from_records ? draw_own(ctx) : draw_record(ctx);
    if (!key) return RedisModule_ReplyWithNull(ctx);
    RedisModule_ReplyWithString(ctx, key);
    RedisModule_FreeString(ctx, key);
    return REDISMODULE_OK;
}
