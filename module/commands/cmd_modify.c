/* cmd_modify.c: commands that change a value: appending, ranges, counters. The value is decoded,
 * changed and encoded again; its expiry stays. */
#include "commands/commands.h"
#include "keyspace/lookup.h"
#include "keyspace/native.h"
#include "keyspace/prefixes.h"
#include "keyspace/replicate.h"
#include "server/clock.h"
#include "server/reply.h"
#include "server/role.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define VALUE_MAX (512ULL << 20) /* proto-max-bulk-len as Redis has it by default */

/* The value that is there, the empty one if there is none. NULL: damaged, and that is the reply. */
static const uint8_t *value_or_empty(record *r, size_t *len) {
    *len = 0;
    return r->found ? record_value(r, len) : (const uint8_t *)"";
}

/* Whether a record may grow to that length; replies the error if not. How long what is sent may be
 * the server has judged by its own setting, or another server has. */
static bool length_allowed(RedisModuleCtx *ctx, uint64_t len) {
    bool judged = native_sent(ctx) || role_repeats(ctx);
    if (len <= (judged ? MAP_RECORD_MAX : VALUE_MAX)) return true;
    RedisModule_ReplyWithError(ctx, ERROR_TOO_LONG);
    return false;
}

/* A command that changes a value, as replicas are told of it, and its event. */
typedef struct change {
    const char *command, *event;
    RedisModuleString **argv;
    int argc;
} change;

/* Writes the changed value, announces it and replies a number. */
static int finish(record *r, const void *value, size_t len, const change *c, long long reply) {
    if (!record_put(r, value, len, EXPIRY_KEPT)) return REDISMODULE_OK;
    replicate_command(r->ctx, c->command, c->argv + 1, (size_t)c->argc - 1, (size_t)c->argc - 1);
    record_notify(r, REDISMODULE_NOTIFY_STRING, c->event);
    return RedisModule_ReplyWithLongLong(r->ctx, reply);
}

/* ---- appending and ranges -------------------------------------------------------------------- */

/* A value that comes in one piece is not changed in part. */
static bool is_left_to_server(const record *r, size_t offset, size_t len) {
    return (r->found || offset > 0) && len > NATIVE_CHANGED_IN_PART && prefixes_any() &&
           prefixes_match_name(r->name) != PREFIX_NONE;
}

/* Writes `part` over the value at `offset`, with zero bytes up to there. */
static int overlay(record *r, size_t offset, const char *part, size_t part_len, const change *c) {
    size_t len;
    if (!record_value_len(r, &len)) return REDISMODULE_OK;
    size_t total = offset + part_len > len ? offset + part_len : len;
    if (is_left_to_server(r, offset, total)) return native_leave(r->ctx, c->argv, c->argc);
    if (!length_allowed(r->ctx, total)) return REDISMODULE_OK;
    const uint8_t *value = value_or_empty(r, &len);
    if (!value) return REDISMODULE_OK;
    uint8_t *changed = RedisModule_Calloc(1, total + 1);
    memcpy(changed, value, len);
    memcpy(changed + offset, part, part_len);
    finish(r, changed, total, c, (long long)total);
    RedisModule_Free(changed);
    return REDISMODULE_OK;
}

int cmd_cappend(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    size_t part_len, len;
    if (!record_value_len(&r, &len)) return REDISMODULE_OK;
    const char *part = RedisModule_StringPtrLen(argv[2], &part_len);
    change c = {"CAPPEND", "append", argv, argc};
    return overlay(&r, len, part, part_len, &c);
}

int cmd_csetrange(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 4) return RedisModule_WrongArity(ctx);
    long long offset;
    if (RedisModule_StringToLongLong(argv[2], &offset) != REDISMODULE_OK)
        return RedisModule_ReplyWithError(ctx, ERROR_INTEGER);
    if (offset < 0) return RedisModule_ReplyWithError(ctx, "ERR offset is out of range");
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    size_t part_len, len;
    if (!record_value_len(&r, &len)) return REDISMODULE_OK;
    const char *part = RedisModule_StringPtrLen(argv[3], &part_len);
    if (part_len == 0) return RedisModule_ReplyWithLongLong(ctx, (long long)len);
    change c = {"CSETRANGE", "setrange", argv, argc};
    return overlay(&r, (size_t)offset, part, part_len, &c);
}

int cmd_cgetrange(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 4) return RedisModule_WrongArity(ctx);
    long long from, to;
    if (RedisModule_StringToLongLong(argv[2], &from) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[3], &to) != REDISMODULE_OK)
        return RedisModule_ReplyWithError(ctx, ERROR_INTEGER);
    record r;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    record_note_read(&r);
    if (!r.found) return RedisModule_ReplyWithStringBuffer(ctx, "", 0);
    size_t size;
    const uint8_t *value = record_read_value(&r, &size);
    if (!value) return REDISMODULE_OK;
    long long len = (long long)size;
    bool nothing = from < 0 && to < 0 && from > to;
    if (from < 0) from = from + len > 0 ? from + len : 0;
    if (to < 0) to = to + len > 0 ? to + len : 0;
    if (to >= len) to = len - 1;
    if (nothing || from > to || len == 0) return RedisModule_ReplyWithStringBuffer(ctx, "", 0);
    return RedisModule_ReplyWithStringBuffer(ctx, (const char *)value + from,
                                             (size_t)(to - from + 1));
}

/* ---- counters -------------------------------------------------------------------------------- */

/* No server reads text of so many bytes as a number; the longest long double there is has 4933
 * digits before the point. */
#define NUMBER_ROOM 5120

/* The value as a string object, to be read as a number; "0" if there is none, "" if it is too long
 * for one. NULL: damaged. */
static RedisModuleString *number_text(record *r) {
    if (!r->found) return RedisModule_CreateString(r->ctx, "0", 1);
    size_t len;
    const uint8_t *value = record_value(r, &len);
    if (!value) return NULL;
    return RedisModule_CreateString(r->ctx, (const char *)value, len < NUMBER_ROOM ? len : 0);
}

/* The event is the same whichever way it goes. */
static int add(RedisModuleCtx *ctx, const change *c, long long by) {
    record r;
    if (!lookup_key(ctx, c->argv, c->argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    RedisModuleString *text = number_text(&r);
    long long n;
    if (!text) return REDISMODULE_OK;
    int read = RedisModule_StringToLongLong(text, &n);
    RedisModule_FreeString(ctx, text);
    if (read != REDISMODULE_OK) return RedisModule_ReplyWithError(ctx, ERROR_INTEGER);
    if (__builtin_add_overflow(n, by, &n))
        return RedisModule_ReplyWithError(ctx, "ERR increment or decrement would overflow");
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", n);
    return finish(&r, digits, (size_t)len, c, n);
}

int cmd_cincr(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    change c = {"CINCR", "incrby", argv, argc};
    return argc == 2 ? add(ctx, &c, 1) : RedisModule_WrongArity(ctx);
}

int cmd_cdecr(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    change c = {"CDECR", "incrby", argv, argc};
    return argc == 2 ? add(ctx, &c, -1) : RedisModule_WrongArity(ctx);
}

int cmd_cincrby(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long by;
    if (argc != 3) return RedisModule_WrongArity(ctx);
    if (RedisModule_StringToLongLong(argv[2], &by) != REDISMODULE_OK)
        return RedisModule_ReplyWithError(ctx, ERROR_INTEGER);
    change c = {"CINCRBY", "incrby", argv, argc};
    return add(ctx, &c, by);
}

int cmd_cdecrby(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long by;
    if (argc != 3) return RedisModule_WrongArity(ctx);
    if (RedisModule_StringToLongLong(argv[2], &by) != REDISMODULE_OK)
        return RedisModule_ReplyWithError(ctx, ERROR_INTEGER);
    if (by == INT64_MIN) return RedisModule_ReplyWithError(ctx, "ERR decrement would overflow");
    change c = {"CDECRBY", "incrby", argv, argc};
    return add(ctx, &c, -by);
}

/* As Redis prints a float: 17 digits behind the point, without the zeros at the end. */
static size_t print_float(char *text, size_t room, long double n) {
    size_t len = (size_t)snprintf(text, room, "%.17Lf", n);
    while (text[len - 1] == '0') len--;
    if (text[len - 1] == '.') len--;
    if (len == 2 && !memcmp(text, "-0", 2)) text[0] = '0', len = 1;
    return len;
}

int cmd_cincrbyfloat(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    record r;
    long double n, by;
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    RedisModuleString *text = number_text(&r);
    if (!text) return REDISMODULE_OK;
    bool read = RedisModule_StringToLongDouble(text, &n) == REDISMODULE_OK &&
                RedisModule_StringToLongDouble(argv[2], &by) == REDISMODULE_OK;
    RedisModule_FreeString(ctx, text);
    if (!read) return RedisModule_ReplyWithError(ctx, "ERR value is not a valid float");
    n += by;
    if (isnan(n) || isinf(n))
        return RedisModule_ReplyWithError(ctx, "ERR increment would produce NaN or Infinity");
    char digits[NUMBER_ROOM];
    size_t len = print_float(digits, sizeof digits, n);
    if (!record_put(&r, digits, len, EXPIRY_KEPT)) return REDISMODULE_OK;
    RedisModuleString *result = RedisModule_CreateString(ctx, digits, len);
    replicate_set(ctx, r.name, result, EXPIRY_KEPT);
    record_notify(&r, REDISMODULE_NOTIFY_STRING, "incrbyfloat");
    RedisModule_ReplyWithString(ctx, result);
    RedisModule_FreeString(ctx, result);
    return REDISMODULE_OK;
}
