/* migration.c: atomic slot migration. See migration.h. */
#include "keyspace/migration.h"

#include "core/base/hash_slot.h"
#include "keyspace/maps.h"

/* redismodule.h is Redis' own and knows nothing of these. */
#define VALKEY_OPTION_HANDLE_ATOMIC_SLOT_MIGRATION (1 << 5)
#define VALKEY_EVENT_ATOMIC_SLOT_MIGRATION         19
#define VALKEY_IMPORT_STARTED                      0
#define VALKEY_IMPORT_ABORTED                      2
#define VALKEY_IMPORT_COMPLETED                    4

typedef struct slot_range {
    int first, last;
} slot_range;

typedef struct migration_info {
    uint64_t version;
    char job_name[REDISMODULE_NODE_ID_LEN + 1];
    slot_range *ranges;
    uint32_t count;
} migration_info;

int migration_option(void) {
    int (*options)(void);
    /* Asked for under the name that only Valkey has: in Redis the same bit may come to mean
     * something else. */
    if (RedisModule_GetApi("ValkeyModule_GetModuleOptionsAll", (void *)&options) != REDISMODULE_OK)
        return 0;
    return options() & VALKEY_OPTION_HANDLE_ATOMIC_SLOT_MIGRATION;
}

static void on_migration(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e;
    const migration_info *info = data;
    if (sub != VALKEY_IMPORT_STARTED && sub != VALKEY_IMPORT_ABORTED &&
        sub != VALKEY_IMPORT_COMPLETED)
        return;
    for (uint32_t i = 0; i < info->count; i++)
        for (int slot = info->ranges[i].first; slot <= info->ranges[i].last; slot++)
            if (slot >= 0 && slot < HASH_SLOTS)
                maps_hide((uint32_t)slot, sub == VALKEY_IMPORT_STARTED);
}

int migration_start(RedisModuleCtx *ctx) {
    if (!migration_option()) return REDISMODULE_OK;
    return RedisModule_SubscribeToServerEvent(
        ctx, (RedisModuleEvent){VALKEY_EVENT_ATOMIC_SLOT_MIGRATION, 1}, on_migration);
}
