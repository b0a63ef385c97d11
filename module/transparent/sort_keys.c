/* sort_keys.c: keys that SORT reads without naming them. See sort_keys.h. */
#include "transparent/sort_keys.h"

#include "keyspace/maps.h"
#include "server/reply.h"

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

/* The elements of what is sorted, in the selected database. NULL: there is nothing. */
static RedisModuleCallReply *elements_of(RedisModuleString *key) {
    RedisModuleKey *handle =
        RedisModule_OpenKey(ckv.ctx, key, REDISMODULE_READ | REDISMODULE_WRITE);
    int type = RedisModule_KeyType(handle);
    RedisModule_CloseKey(handle);
    switch (type) {
    case REDISMODULE_KEYTYPE_LIST:
        return RedisModule_Call(ckv.ctx, "LRANGE", "scc", key, "0", "-1");
    case REDISMODULE_KEYTYPE_SET:
        return RedisModule_Call(ckv.ctx, "SMEMBERS", "s", key);
    case REDISMODULE_KEYTYPE_ZSET:
        return RedisModule_Call(ckv.ctx, "ZRANGE", "scc", key, "0", "-1");
    }
    return NULL;
}

static void leave_all(const pattern *p, RedisModuleCallReply *elements,
                      void (*leave)(RedisModuleString *)) {
    for (size_t i = 0; i < RedisModule_CallReplyLength(elements); i++) {
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
}

static RedisModuleString *arg(RedisModuleCommandFilterCtx *f, int i) {
    return (RedisModuleString *)RedisModule_CommandFilterArgGet(f, i);
}

void sort_keys_leave(RedisModuleCommandFilterCtx *f, int argc, void (*leave)(RedisModuleString *)) {
    for (int i = 2; i + 1 < argc; i++) {
        pattern p;
        if (!arg_is(arg(f, i), "by") && !arg_is(arg(f, i), "get")) continue;
        if (!read_pattern(arg(f, ++i), &p)) continue;
        for (int db = 0; db < maps_dbs(); db++) {
            RedisModule_SelectDb(ckv.ctx, db);
            RedisModuleCallReply *elements = elements_of(arg(f, 1));
            if (!elements) continue;
            leave_all(&p, elements, leave);
            RedisModule_FreeCallReply(elements);
        }
    }
}
