/* condition.c: IFEQ and IFNE. See condition.h. */
#include "commands/condition.h"

#include "keyspace/native.h"
#include "server/reply.h"

#include <string.h>

bool condition_word(RedisModuleString *word, condition *c) {
    c->equal = arg_is(word, "ifeq");
    return c->equal || arg_is(word, "ifne");
}

bool condition_check_native(const condition *c, RedisModuleCtx *ctx, RedisModuleString *key,
                            bool *holds) {
    bool equal;
    if (!native_string_is(ctx, key, c->value, &equal)) {
        RedisModule_ReplyWithError(ctx, ERROR_TYPE);
        return false;
    }
    *holds = equal == c->equal;
    return true;
}

bool condition_check(const condition *c, record *r, bool *holds) {
    size_t len, wanted_len;
    const char *wanted = RedisModule_StringPtrLen(c->value, &wanted_len);
    bool equal = false;
    if (!record_value_len(r, &len)) return false;
    if (r->found && len == wanted_len) {
        const uint8_t *value = record_value(r, &len);
        if (!value) return false;
        equal = len == wanted_len && !memcmp(value, wanted, len);
    }
    *holds = equal == c->equal;
    return true;
}
