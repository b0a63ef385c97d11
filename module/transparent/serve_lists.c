/* serve_lists.c: SCAN, KEYS, RANDOMKEY. See serve_lists.h. */
#include "transparent/serve_lists.h"

#include "keyspace/maps.h"
#include "keyspace/native.h"
#include "keyspace/native_calls.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "server/acl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* In a cursor, see serve_lists.h. */
#define PHASE      (1ULL << 48)
#define MOVED      (1ULL << 50)
#define TIMES      (1ULL << 51)
#define TIMES_END  4
#define CURSOR_END (TIMES_END * TIMES)
/* Keys that are drawn before it is said that there are only maps. */
#define TRIES 100

/* Whether a key that the server has told of is one that it would have without ckv. */
static bool is_users(RedisModuleCtx *ctx, RedisModuleString *key) {
    uint32_t place = places_of_name(key);
    return place == PLACES_NONE || !maps_at(RedisModule_GetSelectedDb(ctx), place);
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

/* Calls the server's own command or ours; if it meets what has expired, replicas are told ("!").
 * Whoever may list the server's keys may list them all. */
static RedisModuleCallReply *list(RedisModuleCtx *ctx, const char *command,
                                  RedisModuleString *first, RedisModuleString **more,
                                  size_t count) {
    bool trusted = acl_trust(true);
    native_note_call(command);
    RedisModuleCallReply *reply = RedisModule_Call(ctx, command, "!Esv", first, more, count);
    acl_trust(trusted);
    return reply;
}

/* ---- SCAN ------------------------------------------------------------------------------------ */

typedef enum scan_phase { SCAN_OWN, SCAN_RECORDS, SCAN_OWN_AGAIN } scan_phase;

/* A cursor, taken apart. */
typedef struct scan_position {
    uint64_t at; /* the cursor of the phase */
    scan_phase phase;
    bool moved;
} scan_position;

static uint64_t times_moved; /* that a SCAN found records moved out since the one before it */

static void look_for_moves(void) {
    static uint64_t moved_out;
    times_moved += moved_out != ckv.stats.moved_out;
    moved_out = ckv.stats.moved_out;
}

/* False: it is none that this server has given. */
static bool read_position(const RedisModuleString *cursor, scan_position *p) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(cursor, &len);
    if (len == 0 || strspn(text, "0123456789") != len) return false;
    uint64_t number = strtoull(text, NULL, 10);
    p->at = number & (PHASE - 1);
    p->phase = number / PHASE % 4;
    p->moved = number / MOVED % 2 || (number > 0 && number / TIMES != times_moved % TIMES_END);
    return number < CURSOR_END && p->phase <= SCAN_OWN_AGAIN;
}

static uint64_t write_position(const scan_position *p) {
    return p->at + p->phase * PHASE + p->moved * MOVED + times_moved % TIMES_END * TIMES;
}

/* Goes on behind a phase; false: that was the last. */
static bool next_phase(scan_position *p) {
    p->at = 0;
    if (p->phase == SCAN_OWN_AGAIN || (p->phase == SCAN_RECORDS && !p->moved)) return false;
    p->phase++;
    return true;
}

/* Keys that are to be told. */
typedef struct scanned {
    RedisModuleString **keys;
    size_t count;
} scanned;

/* At once: a map may go when what follows meets what has expired in it. */
static void take_keys(RedisModuleCtx *ctx, scanned *s, RedisModuleCallReply *keys,
                      bool (*wanted)(RedisModuleCtx *, RedisModuleString *)) {
    size_t n = RedisModule_CallReplyLength(keys);
    s->keys = RedisModule_Realloc(s->keys, (s->count + n + 1) * sizeof *s->keys);
    for (size_t i = 0; i < n; i++) {
        RedisModuleString *key =
            RedisModule_CreateStringFromCallReply(RedisModule_CallReplyArrayElement(keys, i));
        if (key && wanted(ctx, key))
            s->keys[s->count++] = key;
        else if (key)
            RedisModule_FreeString(ctx, key);
    }
}

/* Asks for what is next in a phase, and moves the position on by it. A cursor that is none of ours
 * is the server's to judge. False: the error is replied. */
static bool scan_on(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool given,
                    scan_position *p, scanned *s) {
    bool records = p->phase == SCAN_RECORDS;
    RedisModuleString *cursor = given ? RedisModule_CreateStringFromString(ctx, argv[1])
                                      : RedisModule_CreateStringPrintf(ctx, "%" PRIu64, p->at);
    RedisModuleCallReply *reply =
        list(ctx, records ? "cscan" : "scan", cursor, argv + 2, (size_t)argc - 2);
    RedisModule_FreeString(ctx, cursor);
    if (!is_array(reply)) {
        native_reply(ctx, reply);
        return false;
    }
    size_t len;
    char text[24] = "";
    const char *told =
        RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(reply, 0), &len);
    if (told && len < sizeof text) memcpy(text, told, len);
    p->at = strtoull(text, NULL, 10);
    take_keys(ctx, s, RedisModule_CallReplyArrayElement(reply, 1), records ? is_served : is_users);
    RedisModule_FreeCallReply(reply);
    return true;
}

static void reply_scan(RedisModuleCtx *ctx, uint64_t cursor, const scanned *s) {
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModuleString *text = RedisModule_CreateStringPrintf(ctx, "%" PRIu64, cursor);
    RedisModule_ReplyWithString(ctx, text);
    RedisModule_FreeString(ctx, text);
    RedisModule_ReplyWithArray(ctx, (long)s->count);
    for (size_t i = 0; i < s->count; i++) RedisModule_ReplyWithString(ctx, s->keys[i]);
}

int serve_scan(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    scan_position p;
    scanned s = {NULL, 0};
    if (argc < 2) return RedisModule_WrongArity(ctx);
    look_for_moves();
    bool ours = read_position(argv[1], &p);
    if (!ours) p = (scan_position){.phase = SCAN_OWN_AGAIN};
    bool own = p.phase == SCAN_OWN;
    bool done = scan_on(ctx, argv, argc, !ours, &p, &s);
    bool goes_on = p.at != 0 || next_phase(&p);
    /* The last of the server's keys go with the first records: few keys are told at once. */
    if (done && own && p.phase == SCAN_RECORDS) {
        done = scan_on(ctx, argv, argc, false, &p, &s);
        goes_on = p.at != 0 || next_phase(&p);
    }
    if (done && goes_on) prefixes_note_cursor();
    if (done) reply_scan(ctx, goes_on ? write_position(&p) : 0, &s);
    for (size_t i = 0; i < s.count; i++) RedisModule_FreeString(ctx, s.keys[i]);
    RedisModule_Free(s.keys);
    return REDISMODULE_OK;
}

/* ---- KEYS ------------------------------------------------------------------------------------ */

int serve_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    RedisModuleCallReply *own = list(ctx, "keys", argv[1], NULL, 0);
    if (!is_array(own)) return native_reply(ctx, own);
    RedisModuleCallReply *records = list(ctx, "ckeys", argv[1], NULL, 0);
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
        bool trusted = acl_trust(true);
        RedisModuleCallReply *reply = RedisModule_Call(ctx, "CRANDOMKEY", "");
        acl_trust(trusted);
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
