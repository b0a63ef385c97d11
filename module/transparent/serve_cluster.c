/* serve_cluster.c: CLUSTERSCAN, CLUSTER COUNTKEYSINSLOT. See serve_cluster.h. */
#include "transparent/serve_cluster.h"

#include "commands/cursor.h"
#include "core/base/hash_slot.h"
#include "keyspace/maps.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "transparent/scanning.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FINGERPRINT_MAX 16
#define COUNT_DEFAULT   10

/* ---- cursors --------------------------------------------------------------------------------- */

/* One that names a slot, taken apart; the texts are the argument's. */
typedef struct cursor {
    const char *fingerprint, *tag; /* the tag with its braces */
    size_t fingerprint_len, tag_len;
    uint32_t slot;
    uint64_t number;
} cursor;

/* False: it names none, as "0" and what the server will refuse. */
static bool read_cursor(const RedisModuleString *from, cursor *c) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(from, &len), *end = text + len;
    const char *behind = memchr(text, '-', len);
    const char *number = behind ? memchr(behind + 1, '-', (size_t)(end - behind - 1)) : NULL;
    if (!number || strspn(number + 1, "0123456789") != (size_t)(end - number - 1)) return false;
    *c = (cursor){.fingerprint = text,
                  .fingerprint_len = (size_t)(behind - text),
                  .tag = behind + 1,
                  .tag_len = (size_t)(number - behind - 1),
                  .number = strtoull(number + 1, NULL, 10)};
    c->slot = hash_slot_of_key(c->tag, c->tag_len);
    return true;
}

/* Seven characters, of which a server's has six. */
static const char *our_fingerprint(void) {
    static char text[8];
    unsigned char random[sizeof text - 1];
    if (*text) return text;
    RedisModule_GetRandomBytes(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) text[i] = (char)('a' + random[i] % 16);
    return text;
}

static bool is_ours(const cursor *c) {
    const char *ours = our_fingerprint();
    return c->fingerprint_len == strlen(ours) && !memcmp(c->fingerprint, ours, strlen(ours));
}

/* The server's, for the cursors that we give it; it has told one before we need it. */
static char server_fingerprint[FINGERPRINT_MAX] = "0";

static void learn_fingerprint(const cursor *c) {
    if (c->fingerprint_len >= sizeof server_fingerprint) return;
    memcpy(server_fingerprint, c->fingerprint, c->fingerprint_len);
    server_fingerprint[c->fingerprint_len] = 0;
}

/* ---- CLUSTERSCAN ----------------------------------------------------------------------------- */

typedef struct cluster_scan {
    RedisModuleCtx *ctx;
    RedisModuleString **options;
    size_t count;
    long long left;    /* keys that are still to be looked at, about */
    int64_t only_slot; /* SLOT's, or that of all keys that MATCH; -1: any */
    cursor given;
    scan_position position; /* in the slot of the cursor */
    scanned native, records;
    RedisModuleString *next; /* the cursor that is told */
} cluster_scan;

/* The slot of all keys that match a pattern, as the server sees it; -1: they are in several. */
static int64_t slot_of_pattern(const char *pattern, size_t len) {
    const char *end = pattern + len, *open = memchr(pattern, '{', len);
    const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    bool tagged = close && close > open + 1;
    for (const char *at = pattern; at < (tagged ? close : end); at++)
        if (memchr("*?[\\", *at, 4)) return -1;
    return hash_slot_of_key(pattern, len);
}

/* The server has found them right. */
static void read_options(cluster_scan *s) {
    s->left = COUNT_DEFAULT;
    s->only_slot = -1;
    for (size_t i = 0; i + 1 < s->count; i += 2) {
        size_t len;
        long long number = 0;
        const char *text = RedisModule_StringPtrLen(s->options[i + 1], &len);
        RedisModule_StringToLongLong(s->options[i + 1], &number);
        if (arg_is(s->options[i], "count")) s->left = number;
        if (arg_is(s->options[i], "slot")) s->only_slot = number;
        if (arg_is(s->options[i], "match") && s->only_slot < 0)
            s->only_slot = slot_of_pattern(text, len);
    }
}

static void tell(cluster_scan *s, RedisModuleString *next) {
    if (s->next) RedisModule_FreeString(s->ctx, s->next);
    s->next = next;
}

/* The cursor of a slot that has been begun; NULL: it has not. */
static void tell_slot(cluster_scan *s, uint32_t slot, const scan_position *p) {
    RedisModuleString *map = places_name(slot);
    const char *tag = strchr(RedisModule_StringPtrLen(map, NULL), '{');
    bool given = slot == s->given.slot;
    tell(s, RedisModule_CreateStringPrintf(s->ctx, "%s-%.*s-%" PRIu64, p ? our_fingerprint() : "0",
                                           given ? (int)s->given.tag_len : (int)strlen(tag),
                                           given ? s->given.tag : tag,
                                           p ? scanning_write_position(p) : 0));
    RedisModule_FreeString(NULL, map);
}

/* The cursor behind a slot of which all has been told. */
static void tell_next_slot(cluster_scan *s, uint32_t slot) {
    if (s->only_slot >= 0 || slot + 1 == HASH_SLOTS)
        tell(s, RedisModule_CreateString(s->ctx, "0", 1));
    else
        tell_slot(s, slot + 1, NULL);
}

/* Forgets keys of other slots than `first` to `last`, from one on. */
static void keep_slots(cluster_scan *s, scanned *keys, size_t from, uint32_t first, uint32_t last) {
    size_t kept = from;
    for (size_t i = from; i < keys->count; i++) {
        uint32_t slot = places_of_string(keys->keys[i]);
        if (slot >= first && slot <= last)
            keys->keys[kept++] = keys->keys[i];
        else
            RedisModule_FreeString(s->ctx, keys->keys[i]);
    }
    keys->count = kept;
}

/* What CSCAN and CLUSTERSCAN reply; false: it is an error. */
static bool take_reply(cluster_scan *s, RedisModuleCallReply *reply, scanned *to,
                       scanning_wanted *wanted, RedisModuleString **next) {
    if (!scanning_is_array(reply)) return false;
    *next = RedisModule_CreateStringFromCallReply(RedisModule_CallReplyArrayElement(reply, 0));
    scanned_take(s->ctx, to, RedisModule_CallReplyArrayElement(reply, 1), wanted);
    return true;
}

/* Asks the server for its own keys from the cursor on, or for what is wrong with it or the options:
 * false; that is replied. *end: the slot behind those that it has been through. */
static bool scan_native(cluster_scan *s, uint32_t *end) {
    const cursor *c = &s->given;
    bool goes_on = s->position.phase != SCAN_RECORDS && s->position.at > 0;
    RedisModuleString *from = RedisModule_CreateStringPrintf(
        s->ctx, "%s-%.*s-%" PRIu64, goes_on ? server_fingerprint : "0", (int)c->tag_len, c->tag,
        s->position.at);
    RedisModuleCallReply *reply = scanning_ask(s->ctx, "clusterscan", from, s->options, s->count);
    RedisModule_FreeString(s->ctx, from);
    bool done = take_reply(s, reply, &s->native, scanning_is_users, &s->next);
    if (done) read_options(s);
    if (!done || (s->only_slot >= 0 && s->only_slot != c->slot)) {
        native_reply(s->ctx, reply);
        return false;
    }
    RedisModule_FreeCallReply(reply);
    cursor next;
    if (read_cursor(s->next, &next)) {
        *end = next.slot;
        if (next.slot == c->slot) learn_fingerprint(&next);
        if (s->position.phase != SCAN_RECORDS) s->position.at = next.number;
    } else {
        *end = s->only_slot >= 0 ? c->slot + 1 : HASH_SLOTS;
    }
    return true;
}

/* Options for CSCAN: those of its own, and how many records it is to look at. */
static size_t options_for_records(const cluster_scan *s, RedisModuleString **options,
                                  RedisModuleString *word, RedisModuleString *number) {
    size_t n = 0;
    for (size_t i = 0; i + 1 < s->count; i += 2) {
        if (!arg_is(s->options[i], "match") && !arg_is(s->options[i], "type")) continue;
        options[n++] = s->options[i];
        options[n++] = s->options[i + 1];
    }
    options[n++] = word;
    options[n++] = number;
    return n;
}

/* Asks for so many records of a map, or all; returns CSCAN's cursor. It may go on with the next
 * map, whose turn comes later. */
static uint64_t ask_for_records(cluster_scan *s, uint64_t from, long long count) {
    uint32_t slot = cursor_place(from);
    RedisModuleString *cursor = RedisModule_CreateStringPrintf(s->ctx, "%" PRIu64, from),
                      *word = RedisModule_CreateString(s->ctx, "count", 5), *next = NULL,
                      *number = RedisModule_CreateStringFromLongLong(s->ctx, count);
    RedisModuleString **options = RedisModule_Alloc((s->count + 2) * sizeof *options);
    size_t n = options_for_records(s, options, word, number), before = s->records.count;
    RedisModuleCallReply *reply = scanning_ask(s->ctx, "cscan", cursor, options, n);
    uint64_t position = 0;
    if (take_reply(s, reply, &s->records, scanning_is_served, &next)) {
        position = strtoull(RedisModule_StringPtrLen(next, NULL), NULL, 10);
        RedisModule_FreeString(s->ctx, next);
        keep_slots(s, &s->records, before, slot, slot);
    }
    own_call_drop(reply);
    RedisModule_Free(options);
    RedisModule_FreeString(s->ctx, number);
    RedisModule_FreeString(s->ctx, word);
    RedisModule_FreeString(s->ctx, cursor);
    return position;
}

/* Records of a slot from a position in its map on, as many as are left to be looked at. True: that
 * was all. */
static bool scan_records(cluster_scan *s, uint32_t slot, uint64_t *at) {
    const keyed_map *in = maps_served_at(RedisModule_GetSelectedDb(s->ctx), slot);
    if (!in) return true;
    if (s->left <= 0) return false;
    long long all = (long long)in->m->totals.records, count = s->left < all ? s->left : all;
    uint64_t next = ask_for_records(s, cursor_make(slot, (uint32_t)*at), count);
    s->left -= count;
    *at = cursor_position(next);
    return cursor_place(next) != slot || *at == 0;
}

/* Goes on in a slot behind the server's own keys. True: all of it has been told. */
static bool finish_slot(cluster_scan *s, uint32_t slot, scan_position *p) {
    if (p->phase == SCAN_NATIVE_AGAIN) return true;
    if (p->phase == SCAN_NATIVE) scanning_next_phase(p);
    return scan_records(s, slot, &p->at) && !scanning_next_phase(p);
}

/* Tells the records of the slots that the server has been through, as many as are to be looked at:
 * what it has told of slots behind them is for another call. */
static void scan_slots(cluster_scan *s, uint32_t end) {
    scan_position p = s->position;
    for (uint32_t slot = s->given.slot; slot < end; slot++, p = (scan_position){0}) {
        if (finish_slot(s, slot, &p)) continue;
        keep_slots(s, &s->native, 0, 0, slot);
        tell_slot(s, slot, &p);
        return;
    }
}

static void reply_scan(cluster_scan *s) {
    RedisModule_ReplyWithArray(s->ctx, 2);
    RedisModule_ReplyWithString(s->ctx, s->next);
    RedisModule_ReplyWithArray(s->ctx, (long)(s->native.count + s->records.count));
    for (size_t i = 0; i < s->native.count; i++)
        RedisModule_ReplyWithString(s->ctx, s->native.keys[i]);
    for (size_t i = 0; i < s->records.count; i++)
        RedisModule_ReplyWithString(s->ctx, s->records.keys[i]);
}

int serve_cluster_scan(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    cluster_scan s = {.ctx = ctx, .options = argv + 2, .count = (size_t)argc - 2};
    uint32_t end;
    if (argc < 2 || !places_are_slots() || !read_cursor(argv[1], &s.given))
        return native_run(ctx, argv, argc);
    scanning_look_for_moves();
    if (!is_ours(&s.given) || !scanning_read_position(s.given.number, &s.position))
        s.position = (scan_position){0};
    bool only_records = s.position.phase == SCAN_RECORDS;
    if (scan_native(&s, &end)) {
        s.left -= only_records ? 0 : (long long)s.native.count;
        if (only_records) {
            keep_slots(&s, &s.native, 0, HASH_SLOTS, HASH_SLOTS);
            tell_next_slot(&s, s.given.slot);
            end = s.given.slot + 1;
        }
        if (end == s.given.slot)
            tell_slot(&s, end, &s.position);
        else
            scan_slots(&s, end);
        prefixes_note_cursor();
        reply_scan(&s);
    }
    if (s.next) RedisModule_FreeString(ctx, s.next);
    scanned_free(ctx, &s.native);
    scanned_free(ctx, &s.records);
    return REDISMODULE_OK;
}

/* ---- CLUSTER --------------------------------------------------------------------------------- */

/* The map of a slot is a key to the server; to users its records are. While it is on its way here
 * the server counts it as well (Valkey), or nothing. */
static long long count_records(RedisModuleCtx *ctx, uint32_t slot) {
    const keyed_map *s = maps_at(RedisModule_GetSelectedDb(ctx), slot);
    return s ? (long long)s->m->totals.records - 1 : 0;
}

int serve_cluster(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long slot;
    RedisModuleCallReply *reply =
        native_call(ctx, NATIVE_KEEPS_SILENT, "cluster", argv + 1, (size_t)argc - 1);
    bool counted = reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_INTEGER;
    if (!counted || RedisModule_StringToLongLong(argv[2], &slot) != REDISMODULE_OK)
        return native_reply(ctx, reply);
    long long keys = RedisModule_CallReplyInteger(reply);
    RedisModule_FreeCallReply(reply);
    if (keys > 0) keys += count_records(ctx, (uint32_t)slot);
    return RedisModule_ReplyWithLongLong(ctx, keys);
}
