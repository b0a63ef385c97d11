/* cmd_scan.c: CSCAN, CKEYS, CRANDOMKEY: records that nobody has named. */
#include "commands/commands.h"
#include "commands/cursor.h"
#include "commands/glob.h"
#include "core/base/siphash.h"
#include "core/map/map_scan.h"
#include "keyspace/lookup.h"
#include "keyspace/renamed_maps.h"
#include "server/acl.h"
#include "server/clock.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "server/role.h"
#include "server/settings.h"
#include "server/within.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_DEFAULT 10

/* ---- which records --------------------------------------------------------------------------- */

typedef struct criteria {
    int db;
    int64_t now_ms;
    const char *pattern; /* NULL: any key */
    size_t pattern_len;
    bool expiring, lasting; /* which of the two are wanted */
    bool other_type;        /* none is: what is wanted are no strings */
    removals *expired;      /* those that are met; NULL: they stay */
} criteria;

static criteria criteria_all(RedisModuleCtx *ctx) {
    renamed_maps_find();
    return (criteria){.db = RedisModule_GetSelectedDb(ctx),
                      .now_ms = clock_now_ms(),
                      .expiring = true,
                      .lasting = true};
}

static void criteria_pattern(criteria *c, RedisModuleString *pattern) {
    c->pattern = RedisModule_StringPtrLen(pattern, &c->pattern_len);
    if (c->pattern_len == 1 && *c->pattern == '*') c->pattern = NULL;
}

static bool matches(const criteria *c, const uint8_t *key, size_t len) {
    return !c->pattern || glob_match(c->pattern, c->pattern_len, (const char *)key, len);
}

static bool wanted(const criteria *c, const uint8_t *key, size_t len, const map_pos *pos) {
    int64_t at_ms = map_expiry_ms(pos);
    if (c->other_type) return false;
    if (at_ms < c->now_ms || !(at_ms == EXPIRY_NEVER ? c->lasting : c->expiring)) return false;
    return matches(c, key, len);
}

/* ---- what has expired ------------------------------------------------------------------------ */

static bool leaves_expired; /* as nobody might be told */

bool cmd_scan_leave_expired(bool leave) {
    bool before = leaves_expired;
    leaves_expired = leave;
    return before;
}

/* Whether it goes when it is met, as SCAN and RANDOMKEY have it. */
static bool may_expire(RedisModuleCtx *ctx) {
    if (leaves_expired || (!own_call_open() && role_is_called(ctx))) return false;
    return role_may_expire(ctx) && (settings_expire_nested() || !within_exec_or_script());
}

static void criteria_expires(RedisModuleCtx *ctx, criteria *c) {
    static removals met;
    met.db = c->db;
    c->expired = may_expire(ctx) ? &met : NULL;
}

static void note_if_expired(const criteria *c, const uint8_t *key, size_t len, const map_pos *pos) {
    bool expired = map_expiry_ms(pos) < c->now_ms;
    if (expired && c->expired && c->expired->count < REMOVALS_MAX && matches(c, key, len))
        removals_note(c->expired, key, len);
}

static void expire_met(RedisModuleCtx *ctx, const criteria *c) {
    static removals gone;
    if (!c->expired || c->expired->count == 0) return;
    for (size_t i = 0; i < c->expired->count; i++) {
        lookup_expire(ctx, c->expired->keys[i], c->now_ms, &gone);
        RedisModule_FreeString(NULL, c->expired->keys[i]);
    }
    c->expired->count = 0;
    ckv.stats.expired_lazily += gone.count;
    removals_announce(ctx, &gone, REMOVALS_EXPIRED);
}

/* ---- CSCAN ----------------------------------------------------------------------------------- */

/* Keys one behind the other, each after its length: the reply begins with the cursor, which is
 * known last. */
typedef struct gathering {
    criteria criteria;
    long long looked_at;
    long found;
    uint8_t *bytes;
    size_t used, cap;
} gathering;

static bool gather(void *context, const uint8_t *key, size_t len, const map_pos *pos) {
    gathering *g = context;
    g->looked_at++;
    note_if_expired(&g->criteria, key, len, pos);
    if (!wanted(&g->criteria, key, len, pos)) return true;
    if (g->used + sizeof len + len > g->cap) {
        g->cap = 2 * g->cap + sizeof len + len + 256;
        g->bytes = RedisModule_Realloc(g->bytes, g->cap);
    }
    memcpy(g->bytes + g->used, &len, sizeof len);
    memcpy(g->bytes + g->used + sizeof len, key, len);
    g->used += sizeof len + len;
    g->found++;
    return true;
}

/* Goes on from a cursor until `count` records have been looked at, and on to where there is a map
 * again: no page is told of nothing. Returns the next cursor. */
static uint64_t scan(gathering *g, uint64_t cursor, long long count) {
    uint64_t position = map_scan_reversed(cursor_position(cursor));
    for (uint32_t place = cursor_place(cursor); place < ckv.places; place++) {
        const keyed_map *s = maps_served_at(g->criteria.db, place);
        for (; s && position < MAP_SCAN_END; position = map_scan(s->m, position, gather, g))
            if (g->looked_at >= count)
                return cursor_make(place, map_scan_reversed((uint32_t)position));
        position = 0;
    }
    return 0;
}

static int reply_scan(RedisModuleCtx *ctx, const gathering *g, uint64_t cursor) {
    char text[24];
    int text_len = snprintf(text, sizeof text, "%" PRIu64, cursor);
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithStringBuffer(ctx, text, (size_t)text_len);
    RedisModule_ReplyWithArray(ctx, g->found);
    for (size_t at = 0, len; at < g->used; at += sizeof len + len) {
        memcpy(&len, g->bytes + at, sizeof len);
        RedisModule_ReplyWithStringBuffer(ctx, (char *)g->bytes + at + sizeof len, len);
    }
    return REDISMODULE_OK;
}

/* False: the error is replied. */
static bool parse_scan(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, criteria *c,
                       long long *count) {
    for (int i = 2; i < argc; i++) {
        if (arg_is(argv[i], "match") && i + 1 < argc) {
            criteria_pattern(c, argv[++i]);
        } else if (arg_is(argv[i], "count") && i + 1 < argc) {
            if (RedisModule_StringToLongLong(argv[++i], count) != REDISMODULE_OK) {
                RedisModule_ReplyWithError(ctx, ERROR_INTEGER);
                return false;
            }
        } else if (arg_is(argv[i], "type") && i + 1 < argc) {
            c->other_type = !arg_is(argv[++i], "string");
        } else if (arg_is(argv[i], "expires")) {
            c->lasting = false;
        } else if (arg_is(argv[i], "noexpires")) {
            c->expiring = false;
        } else {
            *count = 0;
        }
        if (*count < 1 || (!c->lasting && !c->expiring)) {
            RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
            return false;
        }
    }
    return true;
}

/* As SCAN does: any number that C reads, and nothing else. */
static bool parse_cursor(RedisModuleString *arg, uint64_t *cursor) {
    const char *text = RedisModule_StringPtrLen(arg, NULL);
    char *end;
    errno = 0;
    *cursor = strtoull(text, &end, 10);
    return !isspace((unsigned char)text[0]) && *end == 0 && errno != ERANGE;
}

int cmd_cscan(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    uint64_t cursor;
    long long count = COUNT_DEFAULT;
    if (!acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    gathering g = {.criteria = criteria_all(ctx)};
    if (!parse_cursor(argv[1], &cursor))
        return RedisModule_ReplyWithError(ctx, "ERR invalid cursor");
    if (!parse_scan(ctx, argv, argc, &g.criteria, &count)) return REDISMODULE_OK;
    criteria_expires(ctx, &g.criteria);
    cursor = scan(&g, cursor, count);
    expire_met(ctx, &g.criteria);
    reply_scan(ctx, &g, cursor);
    RedisModule_Free(g.bytes);
    return REDISMODULE_OK;
}

/* ---- CKEYS ----------------------------------------------------------------------------------- */

typedef struct listing {
    RedisModuleCtx *ctx;
    criteria criteria;
    long found, limit;
} listing;

static bool list(void *context, const uint8_t *key, size_t len, const map_pos *pos) {
    listing *l = context;
    note_if_expired(&l->criteria, key, len, pos);
    if (!wanted(&l->criteria, key, len, pos)) return true;
    RedisModule_ReplyWithStringBuffer(l->ctx, (const char *)key, len);
    return ++l->found < l->limit;
}

/* Replies the keys of all records, as many as the limit says. */
static void list_all(listing *l) {
    for (uint32_t place = 0; place < ckv.places && l->found < l->limit; place++) {
        const keyed_map *s = maps_served_at(l->criteria.db, place);
        if (s) map_each_record(s->m, list, l);
    }
}

int cmd_ckeys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    if (!acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    listing l = {ctx, criteria_all(ctx), 0, LONG_MAX};
    criteria_pattern(&l.criteria, argv[1]);
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    list_all(&l);
    RedisModule_ReplySetArrayLength(ctx, l.found);
    return REDISMODULE_OK;
}

/* ---- CRANDOMKEY ------------------------------------------------------------------------------ */

/* Tries before the first record that can be found is taken: most have expired, then. */
#define TRIES 100

static uint64_t random_number(void) {
    static uint64_t counter;
    counter++;
    return siphash13(&counter, sizeof counter, ckv.secret);
}

/* Maps from which one is drawn. */
#define CANDIDATES 16

/* A map of a database, the likelier the more records it holds. Their keys' hash spreads records
 * evenly, so that some candidates do for all. NULL: none of them has any. */
static const keyed_map *random_map(int db) {
    const keyed_map *drawn = NULL;
    uint64_t records = 0;
    for (int i = 0; i < CANDIDATES; i++) {
        const keyed_map *s = maps_ranked(db, random_number());
        if (!s || !maps_served(s) || s->m->totals.records == 0) continue;
        records += s->m->totals.records;
        if (random_number() % records < s->m->totals.records) drawn = s;
    }
    return drawn;
}

int cmd_crandomkey(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 1) return RedisModule_WrongArity(ctx);
    if (!acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    listing l = {ctx, criteria_all(ctx), 0, 1};
    uint64_t records = maps_totals_of(l.criteria.db).totals.records;
    criteria_expires(ctx, &l.criteria);
    for (int i = 0; i < TRIES && records > 0 && l.found == 0; i++) {
        const keyed_map *s = random_map(l.criteria.db);
        if (s) map_visit_random(s->m, random_number(), list, &l);
        expire_met(ctx, &l.criteria);
    }
    if (l.found == 0) list_all(&l);
    expire_met(ctx, &l.criteria);
    /* Where what has expired has to stay, a server tells such a key rather than none. */
    if (l.found == 0 && !role_may_expire(ctx)) {
        l.criteria.now_ms = INT64_MIN;
        list_all(&l);
    }
    return l.found ? REDISMODULE_OK : RedisModule_ReplyWithNull(ctx);
}
