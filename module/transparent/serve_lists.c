/* serve_lists.c: SCAN, KEYS, RANDOMKEY. See serve_lists.h. */
#include "transparent/serve_lists.h"

#include "keyspace/maps.h"
#include "keyspace/native.h"
#include "keyspace/prefixes.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "transparent/scanning.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Keys that are drawn before it is said that there are only maps. */
#define TRIES 100
/* Pages that one call of a scan goes over for one of which something is told: 10 keys take 34 us.
 */
#define PAGES 30

static void reply_keys(RedisModuleCtx *ctx, const scanned *s) {
    RedisModule_ReplyWithArray(ctx, (long)s->count);
    for (size_t i = 0; i < s->count; i++) RedisModule_ReplyWithString(ctx, s->keys[i]);
}

/* ---- SCAN ------------------------------------------------------------------------------------ */

/* False: it is none that this server has given. */
static bool read_cursor(const RedisModuleString *cursor, scan_position *p) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(cursor, &len);
    if (len == 0 || strspn(text, "0123456789") != len) return false;
    return scanning_read_position(strtoull(text, NULL, 10), p);
}

/* The options that most scans have, which every server takes as our command does. */
static bool are_common(RedisModuleString **options, int n) {
    int i = 0;
    while (i + 1 < n && (arg_is(options[i], "match") || arg_is(options[i], "count"))) i += 2;
    return i == n;
}

/* Whether the server takes the options. False: its error is replied. Where each has its value it is
 * asked for no more than a key; otherwise it refuses them, whatever it is asked for. */
static bool takes_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (are_common(argv + 2, argc - 2)) return true;
    RedisModuleString *start = RedisModule_CreateString(ctx, "0", 1);
    RedisModuleString **options = RedisModule_Alloc((size_t)argc * sizeof *options);
    size_t n = (size_t)argc - 2;
    memcpy(options, argv + 2, n * sizeof *options);
    options[n] = RedisModule_CreateString(ctx, "COUNT", 5);
    options[n + 1] = RedisModule_CreateString(ctx, "1", 1);
    RedisModuleCallReply *reply = scanning_ask(ctx, "scan", start, options, n % 2 ? n : n + 2);
    bool takes = scanning_is_array(reply);
    if (takes)
        RedisModule_FreeCallReply(reply);
    else
        native_reply(ctx, reply);
    RedisModule_FreeString(ctx, start);
    RedisModule_FreeString(ctx, options[n]);
    RedisModule_FreeString(ctx, options[n + 1]);
    RedisModule_Free(options);
    return takes;
}

/* Asks for what is next in a phase, and moves the position on by it. A cursor that is none of ours
 * is the server's to judge. False: the error is replied. */
static bool scan_on(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool given,
                    scan_position *p, scanned *s) {
    bool records = p->phase == SCAN_RECORDS;
    if (records && !takes_options(ctx, argv, argc)) return false;
    RedisModuleString *cursor = given ? RedisModule_CreateStringFromString(ctx, argv[1])
                                      : RedisModule_CreateStringPrintf(ctx, "%" PRIu64, p->at);
    RedisModuleCallReply *reply =
        scanning_ask(ctx, records ? "cscan" : "scan", cursor, argv + 2, (size_t)argc - 2);
    RedisModule_FreeString(ctx, cursor);
    if (!scanning_is_array(reply)) {
        native_reply(ctx, reply);
        return false;
    }
    size_t len;
    char text[24] = "";
    const char *told =
        RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(reply, 0), &len);
    if (told && len < sizeof text) memcpy(text, told, len);
    p->at = strtoull(text, NULL, 10);
    scanned_take(ctx, s, RedisModule_CallReplyArrayElement(reply, 1),
                 records ? scanning_is_served : scanning_is_users);
    RedisModule_FreeCallReply(reply);
    return true;
}

static void reply_scan(RedisModuleCtx *ctx, uint64_t cursor, const scanned *s) {
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModuleString *text = RedisModule_CreateStringPrintf(ctx, "%" PRIu64, cursor);
    RedisModule_ReplyWithString(ctx, text);
    RedisModule_FreeString(ctx, text);
    reply_keys(ctx, s);
}

/* Whether the server has no keys of its own for the phase that begins. */
static bool is_over(RedisModuleCtx *ctx, const scan_position *p) {
    return p->phase != SCAN_RECORDS && p->at == 0 && native_count(ctx) == 0;
}

/* The last of the server's keys go with the first records: few keys are told at once. Nor is a page
 * told of which nothing is left, as all were maps or records that are not served: who scans may
 * take it for the end. */
static bool is_too_little(const scanned *s, scan_phase phase, const scan_position *next) {
    bool all_left_out = s->count == 0 && s->left_out > 0;
    return all_left_out || (phase == SCAN_NATIVE && next->phase == SCAN_RECORDS);
}

int serve_scan(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    scan_position p;
    scanned s = {0};
    if (argc < 2) return RedisModule_WrongArity(ctx);
    scanning_look_for_moves();
    bool given = !read_cursor(argv[1], &p), done, goes_on;
    if (given) p = (scan_position){.phase = SCAN_NATIVE_AGAIN};
    scan_phase phase;
    int pages = 0;
    do {
        phase = p.phase;
        done = (!given && is_over(ctx, &p)) || scan_on(ctx, argv, argc, given, &p, &s);
        given = false;
        goes_on = p.at != 0 || scanning_next_phase(&p);
    } while (done && goes_on && ++pages < PAGES && is_too_little(&s, phase, &p));
    if (done && goes_on) prefixes_note_cursor();
    if (done) reply_scan(ctx, goes_on ? scanning_write_position(&p) : 0, &s);
    scanned_free(ctx, &s);
    return REDISMODULE_OK;
}

/* ---- KEYS ------------------------------------------------------------------------------------ */

int serve_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    scanned s = {0};
    if (argc != 2) return RedisModule_WrongArity(ctx);
    RedisModuleCallReply *native = scanning_ask(ctx, "keys", argv[1], NULL, 0);
    if (!scanning_is_array(native)) return native_reply(ctx, native);
    RedisModuleCallReply *records = scanning_ask(ctx, "ckeys", argv[1], NULL, 0);
    scanned_take(ctx, &s, native, scanning_is_users);
    if (scanning_is_array(records)) scanned_take(ctx, &s, records, scanning_is_served);
    RedisModule_FreeCallReply(native);
    own_call_drop(records);
    reply_keys(ctx, &s);
    scanned_free(ctx, &s);
    return REDISMODULE_OK;
}

/* ---- RANDOMKEY ------------------------------------------------------------------------------- */

static RedisModuleString *draw_native(RedisModuleCtx *ctx) {
    bool any = native_count(ctx) > 0;
    for (int i = 0; i < TRIES && any; i++) {
        RedisModuleString *key = RedisModule_RandomKey(ctx);
        if (!key || scanning_is_users(ctx, key)) return key;
        RedisModule_FreeString(ctx, key);
    }
    return NULL;
}

static RedisModuleString *draw_record(RedisModuleCtx *ctx) {
    RedisModuleString *key = NULL;
    for (int i = 0; i < TRIES && !key; i++) {
        RedisModuleCallReply *reply = scanning_ask(ctx, "crandomkey", NULL, NULL, 0);
        key = reply ? RedisModule_CreateStringFromCallReply(reply) : NULL;
        own_call_drop(reply);
        if (!key) return NULL;
        if (scanning_is_served(ctx, key)) return key;
        RedisModule_FreeString(ctx, key);
        key = NULL;
    }
    return NULL;
}

int serve_randomkey(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    uint64_t native = native_count(ctx);
    uint64_t records = maps_totals_of(RedisModule_GetSelectedDb(ctx)).totals.records, random = 0;
    RedisModule_GetRandomBytes((unsigned char *)&random, sizeof random);
    bool from_records = native + records > 0 && random % (native + records) < records;
    RedisModuleString *key = from_records ? draw_record(ctx) : draw_native(ctx);
    if (!key) key = from_records ? draw_native(ctx) : draw_record(ctx);
    if (!key) return RedisModule_ReplyWithNull(ctx);
    RedisModule_ReplyWithString(ctx, key);
    RedisModule_FreeString(ctx, key);
    return REDISMODULE_OK;
}
