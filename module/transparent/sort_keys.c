/* sort_keys.c: keys that SORT reads without naming them. See sort_keys.h. */
#include "transparent/sort_keys.h"

#include "keyspace/maps.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "server/own_call.h"
#include "server/reply.h"

#include <limits.h>
#include <string.h>

typedef struct pattern {
    const char *before, *behind; /* the star */
    size_t before_len, behind_len;
} pattern;

/* A pattern of strings: one with an arrow is about fields of hashes, one without a star is no key.
 */
static bool read_pattern(const RedisModuleString *text, pattern *p) {
    size_t len;
    const char *at = RedisModule_StringPtrLen(text, &len), *star = memchr(at, '*', len);
    if (!star) return false;
    *p = (pattern){at, star + 1, (size_t)(star - at), len - (size_t)(star - at) - 1};
    const char *arrow = memmem(p->behind, p->behind_len, "->", 2);
    return !arrow || arrow + 2 == p->behind + p->behind_len;
}

/* What is sorted: all of it, or a part, where a list keeps its order. */
typedef struct range {
    RedisModuleString *first, *last; /* NULL: all */
} range;

/* The elements of what is sorted, in the selected database. NULL: there is nothing. */
static RedisModuleCallReply *elements_of(RedisModuleCtx *ctx, RedisModuleString *key,
                                         const range *part) {
    switch (native_type(ctx, key)) {
    case REDISMODULE_KEYTYPE_LIST:
        if (part->first) return own_call(ctx, "lrange", "sss", key, part->first, part->last);
        return own_call(ctx, "lrange", "scc", key, "0", "-1");
    case REDISMODULE_KEYTYPE_SET:
        return own_call(ctx, "smembers", "s", key);
    case REDISMODULE_KEYTYPE_ZSET:
        return own_call(ctx, "zrange", "scc", key, "0", "-1");
    }
    return NULL;
}

/* Those of the selected database. */
static void leave_in(RedisModuleCtx *ctx, RedisModuleString *sorted, const pattern *p,
                     const range *part, void (*leave)(RedisModuleString *)) {
    RedisModuleCallReply *elements = elements_of(ctx, sorted, part);
    for (size_t i = 0; elements && i < RedisModule_CallReplyLength(elements); i++) {
        size_t len;
        const char *element =
            RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(elements, i), &len);
        if (!element) continue;
        RedisModuleString *key = RedisModule_CreateString(NULL, p->before, p->before_len);
        RedisModule_StringAppendBuffer(NULL, key, element, len);
        RedisModule_StringAppendBuffer(NULL, key, p->behind, p->behind_len);
        leave(key);
        RedisModule_FreeString(NULL, key);
    }
    own_call_drop(elements);
}

static bool has_pattern(RedisModuleString *option) {
    return arg_is(option, "by") || arg_is(option, "get");
}

int sort_keys_words(RedisModuleString *option) {
    if (arg_is(option, "limit")) return 3;
    return has_pattern(option) || arg_is(option, "store") ? 2 : 1;
}

static void leave_for(RedisModuleCtx *ctx, RedisModuleString *sorted,
                      const RedisModuleString *pattern_text, const range *part,
                      void (*leave)(RedisModuleString *)) {
    pattern p;
    if (!read_pattern(pattern_text, &p)) return;
    if (ctx) leave_in(ctx, sorted, &p, part, leave);
    for (int db = 0; !ctx && db < maps_dbs(); db++) {
        RedisModule_SelectDb(ckv.ctx, db);
        leave_in(ckv.ctx, sorted, &p, part, leave);
    }
}

bool sort_keys_in_order(RedisModuleString **argv, int argc) {
    for (int i = 2; i + 1 < argc; i += sort_keys_words(argv[i])) {
        size_t len;
        if (!arg_is(argv[i], "by")) continue;
        const char *text = RedisModule_StringPtrLen(argv[i + 1], &len);
        if (!memchr(text, '*', len)) return true;
    }
    return false;
}

/* BY without a star and a LIMIT take a part of a list, from its front but for DESC. */
static range part_of(RedisModuleString **argv, int argc) {
    long long from = -1, count = -1;
    for (int i = 2; i < argc; i += sort_keys_words(argv[i])) {
        if (arg_is(argv[i], "desc")) return (range){0};
        if (!arg_is(argv[i], "limit") || i + 2 >= argc) continue;
        if (RedisModule_StringToLongLong(argv[i + 1], &from) != REDISMODULE_OK ||
            RedisModule_StringToLongLong(argv[i + 2], &count) != REDISMODULE_OK)
            return (range){0};
    }
    if (!sort_keys_in_order(argv, argc) || from < 0 || count <= 0 || count > LLONG_MAX - from)
        return (range){0};
    return (range){RedisModule_CreateStringFromLongLong(NULL, from),
                   RedisModule_CreateStringFromLongLong(NULL, from + count - 1)};
}

bool sort_keys_any(RedisModuleString **argv, int argc) {
    pattern p;
    for (int i = 2; i + 1 < argc; i += sort_keys_words(argv[i]))
        if (has_pattern(argv[i]) && read_pattern(argv[i + 1], &p)) return true;
    return false;
}

bool sort_keys_can_tell(RedisModuleString **argv, int argc) {
    int words = 0, options = 0;
    RedisModuleString *written = argv[1];
    for (int i = 2; i < argc; i++) words += arg_is(argv[i], "store");
    for (int i = 2; i < argc; i += sort_keys_words(argv[i])) {
        if (!arg_is(argv[i], "store")) continue;
        options++;
        if (i + 1 < argc) written = argv[i + 1];
    }
    if (words != options || words > 1) return false;
    return !places_are_slots() || places_of_string(argv[1]) == places_of_string(written);
}

void sort_keys_leave(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                     void (*leave)(RedisModuleString *)) {
    range part = part_of(argv, argc);
    for (int i = 2; i + 1 < argc; i += sort_keys_words(argv[i]))
        if (has_pattern(argv[i])) leave_for(ctx, argv[1], argv[i + 1], &part, leave);
    if (!part.first) return;
    RedisModule_FreeString(NULL, part.first);
    RedisModule_FreeString(NULL, part.last);
}
