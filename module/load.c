/* load.c: the module's start. */
#include "background/cron.h"
#include "background/evict.h"
#include "ckv.h"
#include "commands/register.h"
#include "config.h"
#include "core/map/defaults.h"
#include "info.h"
#include "keyspace/aof_form.h"
#include "keyspace/held.h"
#include "keyspace/migration.h"
#include "keyspace/migration_hello.h"
#include "keyspace/own_records.h"
#include "keyspace/places.h"
#include "persist/beside.h"
#include "persist/keyspace_events.h"
#include "persist/type.h"
#include "server/acl.h"
#include "server/child.h"
#include "server/libc_heap.h"
#include "server/no_touch.h"
#include "server/own_call.h"
#include "server/quiet.h"
#include "server/renamed.h"
#include "server/role.h"
#include "server/settings.h"
#include "transparent/serve.h"
#include "transparent/served.h"

#include <sys/random.h>

static void on_module(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e, (void)sub, (void)data;
    evict_modules_changed(ctx);
    serve_modules_changed();
}

static bool draw_secret(uint64_t secret[2]) {
    const ssize_t bytes = 2 * sizeof *secret;
    return getrandom(secret, (size_t)bytes, 0) == bytes;
}

/* Maps have a secret that goes with them into files; that of phrases leaves nowhere. */
static bool start_core(void) {
    uint64_t of_phrases[2];
    /* RM_MallocSize() has what is before the block, in servers that keep its size there. */
    ckv.mem = (mem){RedisModule_Alloc, RedisModule_Realloc, RedisModule_Free,
                    RedisModule_MallocUsableSize};
    if (!draw_secret(ckv.secret) || !draw_secret(of_phrases)) return false;
    phrase_set_secret(of_phrases);
    return map_shared_init(&ckv.shared, &ckv.mem, DEFAULT_COMPRESSION_LEVEL);
}

/* Before 7.0.6 Redis can't be asked for the rules of a user. */
static bool server_is_too_old(void) {
    if (RedisModule_GetModuleUserACLString && RedisModule_SetModuleUserACLString) return false;
    ckv_log("warning", "needs Redis 7.0.6 or newer");
    return true;
}

static bool any_argument(RedisModuleString **argv, int argc) {
    if (argc > 0)
        ckv_log("warning",
                "unknown argument '%.128s': the settings are ckv.<name> of the "
                "configuration",
                RedisModule_StringPtrLen(argv[0], NULL));
    return argc > 0;
}

static void on_child(RedisModuleCtx *ctx, bool born) {
    aof_form_fork(ctx, born);
    if (born) migration_hello_child(ctx);
}

static int start(RedisModuleCtx *ctx) {
    quiet_set_options(ctx, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS |
                               REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD | migration_option());
    ckv.ctx = RedisModule_GetDetachedThreadSafeContext(ctx);
    acl_start();
    if (!start_core() || config_register(ctx) != REDISMODULE_OK) return REDISMODULE_ERR;
    places_start(RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_CLUSTER);
    /* What may be refused comes first: Redis 7.0 goes on telling a module of events that has not
     * been loaded after all. */
    if (register_commands(ctx) != REDISMODULE_OK || served_register(ctx) != REDISMODULE_OK ||
        no_touch_start(ctx) != REDISMODULE_OK ||
        RedisModule_RegisterInfoFunc(ctx, info_section) != REDISMODULE_OK ||
        type_register(ctx) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    keyspace_events_listen(ctx);
    own_records_start(ctx);
    if (beside_start(ctx) != REDISMODULE_OK || !child_start(ctx, on_child) || !role_start(ctx) ||
        migration_start(ctx) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    renamed_start();
    settings_start(ctx);
    evict_start(ctx);
    held_start(ctx);
    cron_start(ctx);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ModuleChange, on_module);
    serve_start(ctx);
    libc_heap_start(ctx);
    return REDISMODULE_OK;
}

/* Where the server refuses something, the module is not loaded after all. */
static void give_back(void) {
    RedisModule_FreeThreadSafeContext(ckv.ctx);
    config_give_back();
    held_give_back();
    served_give_back();
    no_touch_give_back();
    own_call_give_back();
    map_shared_free(&ckv.shared);
}

__attribute__((visibility("default"))) int RedisModule_OnLoad(RedisModuleCtx *ctx,
                                                              RedisModuleString **argv, int argc) {
    if (RedisModule_Init(ctx, CKV_NAME, CKV_MODULE_VERSION, REDISMODULE_APIVER_1) !=
            REDISMODULE_OK ||
        server_is_too_old() || any_argument(argv, argc))
        return REDISMODULE_ERR;
    int started = start(ctx);
    if (started != REDISMODULE_OK) give_back();
    return started;
}
