/* settings.c: the server's settings. See settings.h. */
#include "server/settings.h"

#include "server/own_call.h"

#include <string.h>
#include <strings.h>

#define EFFORT_MAX 10

enum {
    EXPIRE_EFFORT,
    LAZY_EXPIRE,
    LAZY_EVICTION,
    EXPIRE_NESTED,
    DEBUG_ALLOWED,
    IMPORT_MODE,
    SETTINGS
};

static const char *const names[SETTINGS] = {
    "active-expire-effort",   "lazyfree-lazy-expire",
    "lazyfree-lazy-eviction", "lazyexpire-nested-arbitrary-keys",
    "enable-debug-command",   "import-mode"};
/* Where CONFIG can't be called, or the server has no such setting. */
static int values[SETTINGS] = {1, 0, 0, 1, 0, 0};

/* "yes" is 1. */
static int number_of(const char *text, size_t len) {
    int number = 0;
    if (len == 3 && !memcmp(text, "yes", 3)) return 1;
    for (size_t i = 0; i < len && text[i] >= '0' && text[i] <= '9' && number < EFFORT_MAX; i++)
        number = number * 10 + text[i] - '0';
    return number;
}

/* The caller frees the reply, in which the value is; NULL: it can't be had. */
static RedisModuleCallReply *get(RedisModuleCtx *ctx, const char *name, const char **value,
                                 size_t *len) {
    RedisModuleCallReply *reply = own_call(ctx, "config|get", "cc", "GET", name);
    RedisModuleCallReply *second = reply ? RedisModule_CallReplyArrayElement(reply, 1) : NULL;
    *len = 0;
    *value = second ? RedisModule_CallReplyStringPtr(second, len) : NULL;
    return reply;
}

bool settings_is(RedisModuleCtx *ctx, const char *name, const char *value) {
    size_t len;
    const char *text;
    RedisModuleCallReply *reply = get(ctx, name, &text, &len);
    bool is = text && len == strlen(value) && !memcmp(text, value, len);
    own_call_drop(reply);
    return is;
}

bool settings_set(RedisModuleCtx *ctx, const char *name, const char *value) {
    RedisModuleCallReply *reply = own_call(ctx, "config|set", "ccc", "SET", name, value);
    bool done = reply && RedisModule_CallReplyType(reply) != REDISMODULE_REPLY_ERROR;
    own_call_drop(reply);
    return done;
}

void settings_read(RedisModuleCtx *ctx) {
    for (int i = 0; i < SETTINGS; i++) {
        size_t len;
        const char *text;
        RedisModuleCallReply *reply = get(ctx, names[i], &text, &len);
        if (text) values[i] = number_of(text, len);
        own_call_drop(reply);
    }
}

static bool is_known(const char *name) {
    for (int i = 0; i < SETTINGS; i++)
        if (!strcasecmp(name, names[i])) return true;
    return false;
}

void settings_changed(RedisModuleCtx *ctx, const RedisModuleConfigChange *change) {
    bool any = false;
    for (uint32_t i = 0; i < change->num_changes; i++) any |= is_known(change->config_names[i]);
    if (any) settings_read(ctx);
}

int settings_expire_effort(void) {
    return values[EXPIRE_EFFORT];
}

bool settings_lazy_expire(void) {
    return values[LAZY_EXPIRE];
}

bool settings_lazy_eviction(void) {
    return values[LAZY_EVICTION];
}

bool settings_expire_nested(void) {
    return values[EXPIRE_NESTED];
}

bool settings_debug_allowed(void) {
    return values[DEBUG_ALLOWED];
}

bool settings_import_mode(void) {
    return values[IMPORT_MODE];
}
