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

/* The values here hold where CONFIG can't be called, or the server has no such setting. */
static struct {
    const char *name;
    int value;
} known[SETTINGS] = {
    [EXPIRE_EFFORT] = {"active-expire-effort", 1},
    [LAZY_EXPIRE] = {"lazyfree-lazy-expire", 0},
    [LAZY_EVICTION] = {"lazyfree-lazy-eviction", 0},
    [EXPIRE_NESTED] = {"lazyexpire-nested-arbitrary-keys", 1},
    [DEBUG_ALLOWED] = {"enable-debug-command", 0},
    [IMPORT_MODE] = {"import-mode", 0},
};

/* "yes" is 1. */
static int number_of(const char *text, size_t len) {
    int number = 0;
    if (len == 3 && !memcmp(text, "yes", 3)) return 1;
    for (size_t i = 0; i < len && text[i] >= '0' && text[i] <= '9' && number < EFFORT_MAX; i++)
        number = number * 10 + text[i] - '0';
    return number;
}

/* The caller frees the reply, in which the value is; NULL: it can't be had. */
static RedisModuleCallReply *get(RedisModuleCtx *ctx, const char *name,
                                 RedisModuleCallReply **value) {
    RedisModuleCallReply *reply = own_call(ctx, "config|get", "cc", "GET", name);
    *value = reply ? RedisModule_CallReplyArrayElement(reply, 1) : NULL;
    return reply;
}

bool settings_is(RedisModuleCtx *ctx, const char *name, const char *value) {
    RedisModuleCallReply *found, *reply = get(ctx, name, &found);
    bool is = own_call_told(found, value);
    own_call_drop(reply);
    return is;
}

bool settings_set(RedisModuleCtx *ctx, const char *name, const char *value) {
    RedisModuleCallReply *reply = own_call(ctx, "config|set", "ccc", "SET", name, value);
    bool done = reply && RedisModule_CallReplyType(reply) != REDISMODULE_REPLY_ERROR;
    own_call_drop(reply);
    return done;
}

static void read_known(RedisModuleCtx *ctx) {
    for (int i = 0; i < SETTINGS; i++) {
        size_t len;
        RedisModuleCallReply *found, *reply = get(ctx, known[i].name, &found);
        const char *text = found ? RedisModule_CallReplyStringPtr(found, &len) : NULL;
        if (text) known[i].value = number_of(text, len);
        own_call_drop(reply);
    }
}

static bool is_known(const char *name) {
    for (int i = 0; i < SETTINGS; i++)
        if (!strcasecmp(name, known[i].name)) return true;
    return false;
}

static settings_changed *listener; /* NULL: none */

static void on_config(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    const RedisModuleConfigChange *change = data;
    (void)e, (void)sub;
    bool any = false;
    for (uint32_t i = 0; i < change->num_changes; i++) any |= is_known(change->config_names[i]);
    if (any) read_known(ctx);
    if (listener) listener(ctx, change);
}

void settings_start(RedisModuleCtx *ctx) {
    read_known(ctx);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Config, on_config);
}

void settings_listen(settings_changed *told) {
    listener = told;
}

int settings_expire_effort(void) {
    return known[EXPIRE_EFFORT].value;
}

bool settings_lazy_expire(void) {
    return known[LAZY_EXPIRE].value;
}

bool settings_lazy_eviction(void) {
    return known[LAZY_EVICTION].value;
}

bool settings_expire_nested(void) {
    return known[EXPIRE_NESTED].value;
}

bool settings_debug_allowed(void) {
    return known[DEBUG_ALLOWED].value;
}

bool settings_import_mode(void) {
    return known[IMPORT_MODE].value;
}
