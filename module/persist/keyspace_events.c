/* keyspace_events.c: see keyspace_events.h. */
#include "persist/keyspace_events.h"

#include "background/mover.h"
#include "keyspace/aof_form.h"
#include "keyspace/followed.h"
#include "keyspace/maps.h"
#include "keyspace/migration.h"
#include "keyspace/own_records.h"
#include "keyspace/prefixes.h"
#include "keyspace/watched.h"
#include "persist/aof_rewrite.h"
#include "persist/rdb.h"

static void on_flush(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e;
    const RedisModuleFlushInfo *info = data;
    if (sub != REDISMODULE_SUBEVENT_FLUSHDB_START) return;
    ckv.disturbed++;
    watched_db(info->dbnum);
    maps_unlist_db(info->dbnum);
    migration_flushed(info->dbnum);
    if (info->dbnum < 0) own_records_forget();
}

static void on_swap(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)sub;
    const RedisModuleSwapDbInfo *info = data;
    if (info->dbnum_first == info->dbnum_second) return; /* told of as well */
    maps_swap_db(info->dbnum_first, info->dbnum_second);
    mover_begin_anew();
    watched_db_from(info->dbnum_first, info->dbnum_second);
    watched_db_from(info->dbnum_second, info->dbnum_first);
}

static void on_saving(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)data;
    switch (sub) {
    case REDISMODULE_SUBEVENT_PERSISTENCE_AOF_START:
    case REDISMODULE_SUBEVENT_PERSISTENCE_SYNC_AOF_START:
        aof_rewrite_began();
        break;
    case REDISMODULE_SUBEVENT_PERSISTENCE_ENDED:
    case REDISMODULE_SUBEVENT_PERSISTENCE_FAILED:
        aof_rewrite_ended();
        rdb_saving_ended();
        break;
    }
}

static void on_loading(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e, (void)data;
    if (sub != REDISMODULE_SUBEVENT_LOADING_ENDED && sub != REDISMODULE_SUBEVENT_LOADING_FAILED) {
        bool from_aof = sub == REDISMODULE_SUBEVENT_LOADING_AOF_START;
        aof_form_loading(from_aof);
        migration_loading(from_aof);
        prefixes_loading(true);
        followed_loading(true);
        ckv.loadings++;
        rdb_loading_began();
        return;
    }
    prefixes_loading(false);
    rdb_loading_ended();
    migration_loaded(ctx);
    if (maps_any()) aof_form_has_records();
    followed_loading(false);
    mover_begin_anew();
}

void keyspace_events_listen(RedisModuleCtx *ctx) {
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_FlushDB, on_flush);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_SwapDB, on_swap);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Persistence, on_saving);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Loading, on_loading);
}
