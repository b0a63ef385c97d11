/* settings.h: settings of the server's; those that mean for records what they mean for keys are
 * known without asking. */
#ifndef CKV_SETTINGS_H
#define CKV_SETTINGS_H

#include "redismodule.h"

#include <stdbool.h>

/* By CONFIG, under the name that it is known to have (renamed.h). Whether a setting has a value:
 * not where CONFIG can't be called. */
bool settings_is(RedisModuleCtx *ctx, const char *name, const char *value);
/* Whether it has that value from now on. */
bool settings_set(RedisModuleCtx *ctx, const char *name, const char *value);

/* Once, at load: reads those that are known, and again when one of them has changed. */
void settings_start(RedisModuleCtx *ctx);

/* Calls `told` behind that whenever settings have changed: a module has one place where it hears of
 * them. There is one listener. */
typedef void settings_changed(RedisModuleCtx *ctx, const RedisModuleConfigChange *change);
void settings_listen(settings_changed *told);

/* `active-expire-effort`: 1 to 10. */
int settings_expire_effort(void);

/* `lazyfree-lazy-expire`, `lazyfree-lazy-eviction`: whether replicas and the AOF are told to unlink
 * what has expired or is evicted, and not to delete it. */
bool settings_lazy_expire(void);
bool settings_lazy_eviction(void);

/* `lazyexpire-nested-arbitrary-keys`: whether SCAN deletes what has expired within a transaction or
 * a script as well. */
bool settings_expire_nested(void);

/* `enable-debug-command yes`: whether whoever may DEBUG may from anywhere. */
bool settings_debug_allowed(void);

/* Valkey's `import-mode`: nothing expires and nothing is evicted, because the source of the data
 * says what goes. */
bool settings_import_mode(void);

#endif
