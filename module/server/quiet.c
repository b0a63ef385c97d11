/* quiet.c: the server's own announcements that are not for our keys. See quiet.h. */
#include "server/quiet.h"

#include "server/settings.h"
#include "server/version.h"

#include <stddef.h>

/* The letters of the classes in notify-keyspace-events, from the lowest bit; a space for what can't
 * be set. */
static const char letters[] = "KEg$lshzxetm dnoc";

static void set(RedisModuleCtx *ctx, int classes) {
    char value[sizeof letters], *at = value;
    for (size_t i = 0; letters[i]; i++)
        if (classes >> i & 1 && letters[i] != ' ') *at++ = letters[i];
    *at = 0;
    settings_set(ctx, "notify-keyspace-events", value);
}

int quiet_begin(RedisModuleCtx *ctx) {
    int now = RedisModule_GetNotifyKeyspaceEvents();
    if (!(now & REDISMODULE_NOTIFY_NEW)) return 0;
    set(ctx, now & ~REDISMODULE_NOTIFY_NEW);
    return now;
}

void quiet_end(RedisModuleCtx *ctx, int before) {
    if (before) set(ctx, before);
}

static int options; /* of the module, but that keys which are closed are not signalled */

void quiet_set_options(RedisModuleCtx *ctx, int module_options) {
    options = module_options;
    RedisModule_SetModuleOptions(ctx, options | REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
}

void quiet_signal_modified(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (!version_is_redis(REDIS_8_2)) {
        RedisModule_SignalModifiedKey(ctx, key);
        return;
    }
    /* To open it is to find that it has expired, and who is told may come by here himself. */
    RedisModuleKey *opened = RedisModule_OpenKey(ctx, key, REDISMODULE_WRITE);
    RedisModule_SetModuleOptions(ctx, options);
    RedisModule_CloseKey(opened);
    quiet_set_options(ctx, options);
}
