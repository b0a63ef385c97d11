/* serve_info.c: INFO. See serve_info.h. */
#include "transparent/serve_info.h"

#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "keyspace/native.h"
#include "server/own_call.h"
#include "server/version.h"
#include "transparent/catalogue.h"
#include "transparent/string_sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct span {
    const char *at;
    size_t len;
} span;

/* What INFO replied, and what is made of it. */
typedef struct rewriting {
    span text;
    RedisModuleString *to;
    bool in_sizes;    /* the section of sizes has begun */
    int next_sizes;   /* the database whose strings it is to tell of next */
    uint64_t records; /* in all of them */
} rewriting;

static void put(rewriting *r, span s) {
    RedisModule_StringAppendBuffer(NULL, r->to, s.at, s.len);
}

static bool begins(span s, const char *word) {
    size_t len = strlen(word);
    return s.len >= len && !memcmp(s.at, word, len);
}

/* The number behind a word of a line ("keys="); NULL: there is none. */
static const char *number_behind(span line, const char *word, uint64_t *number) {
    const char *at = line.len > 0 ? memmem(line.at, line.len, word, strlen(word)) : NULL;
    if (!at) return NULL;
    at += strlen(word);
    *number = strtoull(at, NULL, 10);
    return at;
}

/* Puts a line up to the number behind a word, and what the number is to be; returns the rest. */
static span put_changed(rewriting *r, span line, const char *word, uint64_t add, uint64_t take) {
    uint64_t number;
    const char *at = number_behind(line, word, &number), *end = line.at + line.len;
    if (!at) return line;
    char digits[24];
    number += add;
    int len = snprintf(digits, sizeof digits, "%" PRIu64, number > take ? number - take : 0);
    put(r, (span){line.at, (size_t)(at - line.at)});
    put(r, (span){digits, (size_t)len});
    while (at < end && *at >= '0' && *at <= '9') at++;
    return (span){at, (size_t)(end - at)};
}

/* ---- counters -------------------------------------------------------------------------------- */

enum {
    HITS,
    MISSES,
    EXPIRED,
    EXPIRED_UNASKED,
    EVICTED,
    FREED_ASIDE,
    LOADED, /* CONFIG RESETSTAT leaves what a file brought */
    LOADED_EXPIRED,
    COUNTERS
};

static const char *const counters[COUNTERS] = {
    [HITS] = "keyspace_hits:",
    [MISSES] = "keyspace_misses:",
    [EXPIRED] = "expired_keys:",
    [EXPIRED_UNASKED] = "expired_keys_active:",
    [EVICTED] = "evicted_keys:",
    [FREED_ASIDE] = "lazyfreed_objects:",
    [LOADED] = "rdb_last_load_keys_loaded:",
    [LOADED_EXPIRED] = "rdb_last_load_keys_expired:",
};

static uint64_t at_reset[COUNTERS];
/* Calls of the module's own that the server's count of commands begins with. It counts each when it
 * has run: the INFO that tells it not yet, the CONFIG that sets it to 0 afterwards. */
static uint64_t calls_at_reset = 1;

static void read_counters(uint64_t now[COUNTERS]) {
    const ckv_stats *s = &ckv.stats;
    now[HITS] = s->hits;
    now[MISSES] = s->misses;
    now[EXPIRED] = s->expired;
    now[EXPIRED_UNASKED] = s->expired - s->expired_lazily;
    now[EVICTED] = s->evicted + s->evicted_keys;
    now[FREED_ASIDE] = maps_freed_aside();
    now[LOADED] = s->file_records - s->file_expired - s->file_maps;
    now[LOADED_EXPIRED] = s->file_expired;
}

static void reset(void) {
    read_counters(at_reset);
    at_reset[LOADED] = at_reset[LOADED_EXPIRED] = 0;
    calls_at_reset = own_calls_ended();
    own_calls_forget();
}

static bool put_counter(rewriting *r, span line) {
    uint64_t now[COUNTERS];
    for (size_t i = 0; i < COUNTERS; i++) {
        if (!begins(line, counters[i])) continue;
        read_counters(now);
        put(r, put_changed(r, line, counters[i], now[i] - at_reset[i], 0));
        return true;
    }
    static const char commands[] = "total_commands_processed:";
    if (!begins(line, commands)) return false;
    put(r, put_changed(r, line, commands, 0, own_calls_ended() - calls_at_reset));
    return true;
}

/* ---- the limit of memory --------------------------------------------------------------------- */

/* As the server writes numbers of bytes for people. */
static void write_for_people(char *text, size_t room, uint64_t bytes) {
    static const char units[] = "BKMGTP";
    size_t unit = 0;
    double number = (double)bytes;
    for (; number >= 1024 && unit + 2 < sizeof units; unit++) number /= 1024;
    snprintf(text, room, unit ? "%.2f%c" : "%.0f%c", number, units[unit]);
}

/* What was asked for, wherever the setting stands. */
static bool put_limit(rewriting *r, span line) {
    char text[64], number[32];
    bool bytes = begins(line, "maxmemory:"), for_people = begins(line, "maxmemory_human:");
    if (!maxmemory_moved() || (!bytes && !for_people)) return false;
    uint64_t limit = maxmemory_now()->wanted_limit;
    snprintf(number, sizeof number, "%" PRIu64, limit);
    if (for_people) write_for_people(number, sizeof number, limit);
    int len = snprintf(text, sizeof text, "maxmemory%s:%s\r\n", for_people ? "_human" : "", number);
    put(r, (span){text, (size_t)len});
    return true;
}

/* ---- databases ------------------------------------------------------------------------------- */

static bool put_database(rewriting *r, span line) {
    uint64_t db = 0;
    if (!begins(line, "db") || !memmem(line.at, line.len, ":keys=", 6)) return false;
    number_behind(line, "db", &db);
    map_totals records = maps_totals_of((int)db).totals;
    /* Redis counts what is on its way here. */
    size_t maps = version_is_redis(REDIS_ANY) ? maps_in_db((int)db) : maps_shown_in_db((int)db);
    span rest = put_changed(r, line, "keys=", records.records, maps);
    put(r, put_changed(r, rest, "expires=", records.expiring, 0));
    return true;
}

/* ---- how long strings are -------------------------------------------------------------------- */

/* Tells of the databases up to `last`, of which the server says so much itself. */
static void put_sizes_to(rewriting *r, int last, span of_last) {
    for (int dbs = maps_dbs(); r->next_sizes <= last; r->next_sizes++) {
        string_sizes s = {0};
        bool is_last = r->next_sizes == last;
        if (is_last) string_sizes_add_text(&s, of_last.at, of_last.at + of_last.len);
        if (r->next_sizes < dbs) string_sizes_add_records(&s, r->next_sizes, r->records);
        string_sizes_put(&s, r->next_sizes, r->to);
    }
}

/* In the section each database has its lines, that of strings first, or none. */
static bool put_sizes(rewriting *r, span line) {
    uint64_t db = 0;
    if (begins(line, "# Keysizes")) {
        r->in_sizes = true;
        r->records = maps_totals().totals.records;
        return false;
    }
    if (!r->in_sizes) return false;
    if (!begins(line, "db")) {
        put_sizes_to(r, maps_dbs() - 1, (span){0});
        r->in_sizes = false;
        return false;
    }
    number_behind(line, "db", &db);
    const char *name = "_" STRING_SIZES_NAME ":", *end = line.at + line.len;
    const char *strings = memmem(line.at, line.len, name, strlen(name));
    if (strings) strings += strlen(name);
    put_sizes_to(r, (int)db, strings ? (span){strings, (size_t)(end - strings)} : (span){0});
    return strings != NULL;
}

/* ---- commands -------------------------------------------------------------------------------- */

/* The names that one command has in the statistics: its own, and those that it is served under. */
static const char *const variants[] = {CKV_SERVED_PREFIX, CKV_ASKING_PREFIX, ""};
#define VARIANTS (sizeof variants / sizeof *variants)

/* The line of one of them, without its end. */
static bool find_line(span text, const char *kind, const char *variant, const char *name,
                      span *line) {
    char begin[96];
    int len = snprintf(begin, sizeof begin, "\n%s%s%s:", kind, variant, name);
    const char *at = memmem(text.at, text.len, begin, (size_t)len);
    if (!at) return false;
    const char *end = strchr(++at, '\r');
    *line = (span){at, end ? (size_t)(end - at) : strlen(at)};
    return true;
}

typedef struct command_stats {
    uint64_t calls, us, rejected, failed;
} command_stats;

static command_stats read_stats(span line) {
    command_stats s = {0};
    number_behind(line, ":calls=", &s.calls);
    number_behind(line, ",usec=", &s.us);
    number_behind(line, "rejected_calls=", &s.rejected);
    number_behind(line, "failed_calls=", &s.failed);
    return s;
}

static uint64_t less(uint64_t number, uint64_t by) {
    return number > by ? number - by : 0;
}

/* Of the server's own command, what was not called by ours that stands for it. */
static command_stats without_ours(command_stats s, const char *name) {
    own_call_counts ours = own_calls_of(name);
    /* The INFO that tells has run, and is not in what it tells. */
    uint64_t left = less(s.calls, ours.calls - !strcmp(name, "info"));
    double share = s.calls ? (double)left / (double)s.calls : 0;
    return (command_stats){left, (uint64_t)((double)s.us * share), s.rejected,
                           less(s.failed, ours.failures)};
}

static void put_stats(rewriting *r, const char *name, const span lines[VARIANTS]) {
    command_stats sum = {0};
    for (size_t i = 0; i < VARIANTS; i++) {
        command_stats s = read_stats(lines[i]);
        if (!*variants[i]) s = without_ours(s, name);
        sum.calls += s.calls;
        sum.us += s.us;
        sum.rejected += s.rejected;
        sum.failed += s.failed;
    }
    if (sum.calls + sum.rejected == 0) return; /* nobody has sent it */
    char line[256];
    int len = snprintf(line, sizeof line,
                       "cmdstat_%s:calls=%" PRIu64 ",usec=%" PRIu64 ",usec_per_call=%.2f"
                       ",rejected_calls=%" PRIu64 ",failed_calls=%" PRIu64 "\r\n",
                       name, sum.calls, sum.us, sum.calls ? (double)sum.us / (double)sum.calls : 0,
                       sum.rejected, sum.failed);
    put(r, (span){line, (size_t)len});
}

/* Percentiles can't be added up: those of ours, if there are any. */
static void put_latency(rewriting *r, const char *kind, const char *name,
                        const span lines[VARIANTS]) {
    size_t i = 0;
    while (!lines[i].at) i++;
    size_t head = strlen(kind) + strlen(variants[i]) + strlen(name);
    put(r, (span){kind, strlen(kind)});
    put(r, (span){name, strlen(name)});
    put(r, (span){lines[i].at + head, lines[i].len - head});
    put(r, (span){"\r\n", 2});
}

/* The command of a line of some kind, as it was sent. NULL: it is none that is served. */
static const catalogue_entry *command_of(span line, const char *kind) {
    const char *at = line.at + strlen(kind), *end = memchr(line.at, ':', line.len);
    if (!end) return NULL;
    for (size_t i = 0; i < VARIANTS; i++) {
        size_t len = strlen(variants[i]);
        if ((size_t)(end - at) <= len || memcmp(at, variants[i], len)) continue;
        at += len;
        break;
    }
    const catalogue_entry *e = catalogue_own(at, (size_t)(end - at));
    return e && e->served != CATALOGUE_NOT_SERVED ? e : NULL;
}

/* Whether a line of some kind is about a command that only we send. */
static bool is_ours(span line, const char *kind) {
    return ckv_stands_for(line.at + strlen(kind), line.len - strlen(kind)) != NULL;
}

/* One that is not served, but that the module has called for itself. */
static bool put_called(rewriting *r, span line) {
    span lines[VARIANTS] = {{0}};
    static const char kind[] = "cmdstat_";
    const char *at = line.at + strlen(kind), *end = memchr(line.at, ':', line.len);
    char name[CATALOGUE_NAME_MAX + 1] = "";
    if (!begins(line, kind) || !end || (size_t)(end - at) >= sizeof name) return false;
    memcpy(name, at, (size_t)(end - at));
    if (own_calls_of(name).calls == 0) return false;
    lines[VARIANTS - 1] = line;
    put_stats(r, name, lines);
    return true;
}

/* Where the first of a command's lines is, one is written for all of them. */
static bool put_command(rewriting *r, span line) {
    static const char *const kinds[] = {"cmdstat_", "latency_percentiles_usec_"};
    size_t k = begins(line, kinds[0]) ? 0 : 1;
    if (!begins(line, kinds[k])) return false;
    const catalogue_entry *e = command_of(line, kinds[k]);
    if (!e) return is_ours(line, kinds[k]) || put_called(r, line);
    /* The server tells of its subcommands, one of which each of ours has called. */
    if (e->container) return true;
    span lines[VARIANTS] = {{0}};
    bool first = true;
    for (size_t i = 0; i < VARIANTS; i++)
        if (find_line(r->text, kinds[k], variants[i], e->name, &lines[i]))
            first &= lines[i].at >= line.at;
    if (first && k == 0) put_stats(r, e->name, lines);
    if (first && k == 1) put_latency(r, kinds[k], e->name, lines);
    return true;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void rewrite(rewriting *r) {
    const char *end = r->text.at + r->text.len;
    for (const char *at = r->text.at; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        span line = {at, (size_t)((newline ? newline + 1 : end) - at)};
        if (!put_counter(r, line) && !put_limit(r, line) && !put_database(r, line) &&
            !put_command(r, line) && !put_sizes(r, line))
            put(r, line);
        at += line.len;
    }
    if (r->in_sizes) put_sizes_to(r, maps_dbs() - 1, (span){0});
}

int serve_info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    RedisModuleCallReply *reply = own_call(ctx, "info", "Ev", argv + 1, (size_t)argc - 1);
    if (!reply || RedisModule_CallReplyType(reply) != REDISMODULE_REPLY_STRING)
        return native_reply(ctx, reply);
    RedisModuleString *text = RedisModule_CreateStringFromCallReply(reply);
    rewriting r = {.to = RedisModule_CreateString(NULL, "", 0)};
    r.text.at = RedisModule_StringPtrLen(text, &r.text.len);
    rewrite(&r);
    size_t len;
    const char *info = RedisModule_StringPtrLen(r.to, &len);
    RedisModule_ReplyWithVerbatimString(ctx, info, len);
    RedisModule_FreeString(NULL, r.to);
    RedisModule_FreeString(ctx, text);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

int serve_config(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    RedisModuleCallReply *reply =
        native_call(ctx, NATIVE_KEEPS_SILENT, "config", argv + 1, (size_t)argc - 1);
    if (reply && RedisModule_CallReplyType(reply) != REDISMODULE_REPLY_ERROR) reset();
    return native_reply(ctx, reply);
}
