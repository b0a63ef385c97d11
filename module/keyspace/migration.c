/* migration.c: atomic slot migration. See migration.h. */
#include "keyspace/migration.h"

#include "core/base/hash_slot.h"
#include "keyspace/maps.h"
#include "keyspace/migration_hello.h"
#include "keyspace/prefixes.h"
#include "keyspace/watched.h"
#include "server/own_call.h"
#include "server/role.h"

#include <stdio.h>

/* ---- Valkey: redismodule.h is Redis' own and knows nothing of these -------------------------- */

#define VALKEY_OPTION_HANDLE_ATOMIC_SLOT_MIGRATION (1 << 5)
#define VALKEY_EVENT_ATOMIC_SLOT_MIGRATION         19
#define VALKEY_IMPORT_STARTED                      0
#define VALKEY_IMPORT_ABORTED                      2
#define VALKEY_IMPORT_COMPLETED                    4

typedef struct valkey_range {
    int first, last;
} valkey_range;

typedef struct valkey_migration {
    uint64_t version;
    char job_name[REDISMODULE_NODE_ID_LEN + 1];
    valkey_range *ranges;
    uint32_t count;
} valkey_migration;

/* ---- Redis: nor does that of 8.0, which may be what we are compiled with, of these ----------- */

#define REDIS_EVENT_SLOT_MIGRATION      18
#define REDIS_EVENT_SLOT_MIGRATION_TRIM 19
#define REDIS_IMPORT_STARTED            0
#define REDIS_IMPORT_FAILED             1
#define REDIS_IMPORT_COMPLETED          2
#define REDIS_MIGRATE_STARTED           3
#define REDIS_MIGRATE_FAILED            4
#define REDIS_MIGRATE_COMPLETED         5
#define REDIS_TRIM_STARTED              0
#define REDIS_TRIM_BACKGROUND           2

typedef struct redis_ranges {
    int32_t count;
    struct {
        uint16_t first, last;
    } ranges[];
} redis_ranges;

typedef struct redis_migration {
    uint64_t version;
    char source[REDISMODULE_NODE_ID_LEN + 1], target[REDISMODULE_NODE_ID_LEN + 1];
    const char *task;
    const redis_ranges *slots;
} redis_migration;

typedef struct redis_trim {
    uint64_t version;
    const redis_ranges *slots;
} redis_trim;

/* ---- what is done ---------------------------------------------------------------------------- */

static bool has_map(int slot) {
    for (int db = 0; db < maps_dbs(); db++)
        if (maps_at(db, (uint32_t)slot)) return true;
    return false;
}

static void remember_prefixes(int slot) {
    for (int db = 0; db < maps_dbs(); db++) {
        const keyed_map *s = maps_at(db, (uint32_t)slot);
        if (s) prefixes_remember(s->m);
    }
}

static void hide(int first, int last, bool hidden) {
    for (int slot = first < 0 ? 0 : first; slot <= last && slot < HASH_SLOTS; slot++) {
        maps_hide((uint32_t)slot, hidden);
        if (!hidden) remember_prefixes(slot);
    }
}

static void on_valkey_migration(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e;
    const valkey_migration *info = data;
    if (sub != VALKEY_IMPORT_STARTED && sub != VALKEY_IMPORT_ABORTED &&
        sub != VALKEY_IMPORT_COMPLETED)
        return;
    for (uint32_t i = 0; i < info->count; i++)
        hide(info->ranges[i].first, info->ranges[i].last, sub == VALKEY_IMPORT_STARTED);
}

static void hide_all(const redis_ranges *slots, bool hidden) {
    for (int32_t i = 0; i < slots->count; i++)
        hide(slots->ranges[i].first, slots->ranges[i].last, hidden);
}

/* What of an import that has failed is here is trimmed, and told of then; not slots without keys.
 */
static void show_empty(const redis_ranges *slots) {
    for (int32_t i = 0; i < slots->count; i++)
        for (int slot = slots->ranges[i].first; slot <= slots->ranges[i].last; slot++)
            if (!has_map(slot)) hide(slot, slot, false);
}

/* Redis: by slot, those of the import that was announced last, while it goes on. A replica that
 * syncs in full meanwhile is not told of it once more. */
static bool arriving[HASH_SLOTS];

static void note_arriving(const redis_ranges *slots, bool arrives) {
    for (int32_t i = 0; i < slots->count; i++)
        for (int slot = slots->ranges[i].first; slot <= slots->ranges[i].last; slot++)
            arriving[slot] = arrives;
}

/* Of an import before, whose end a replica has not heard of. */
static void forget_arriving(void) {
    for (int slot = 0; slot < HASH_SLOTS; slot++) {
        if (arriving[slot]) hide(slot, slot, false);
        arriving[slot] = false;
    }
}

void migration_flushed(int db) {
    if (db >= 0 && migration_option()) return; /* Valkey aborts its imports, and tells */
    for (int slot = 0; slot < HASH_SLOTS; slot++)
        if (maps_hidden((uint32_t)slot) && !arriving[slot]) hide(slot, slot, false);
}

/* What an AOF begins with tells of an import that went on when it was written. If it still does,
 * the primary tells of it in the sync that follows. */
static bool loading_aof;

void migration_loading(bool of_aof) {
    loading_aof = of_aof;
}

/* A replica is only told what its primary does. */
static void greet(RedisModuleCtx *ctx, const redis_migration *info, uint64_t sub) {
    if (role_flags(ctx) & REDISMODULE_CTX_FLAGS_SLAVE) return;
    if (sub == REDIS_IMPORT_STARTED) migration_hello_say(ctx, info->source);
    if (sub == REDIS_MIGRATE_STARTED) migration_hello_expect(info->target, info->task);
    if (sub == REDIS_MIGRATE_FAILED) migration_hello_forget();
}

static void on_redis_migration(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e;
    const redis_migration *info = data;
    if (loading_aof) return;
    greet(ctx, info, sub);
    if (sub == REDIS_IMPORT_STARTED) forget_arriving();
    if (sub <= REDIS_IMPORT_COMPLETED) note_arriving(info->slots, sub == REDIS_IMPORT_STARTED);
    if (sub == REDIS_IMPORT_STARTED || sub == REDIS_MIGRATE_COMPLETED) hide_all(info->slots, true);
    if (sub == REDIS_IMPORT_COMPLETED) hide_all(info->slots, false);
    if (sub == REDIS_IMPORT_FAILED || sub == REDIS_MIGRATE_COMPLETED) show_empty(info->slots);
}

/* A primary that has just become one imports nothing yet, whatever the one before it did. */
static void on_role(bool follows) {
    if (!follows) forget_arriving();
}

static void unlist(const redis_ranges *slots) {
    bool all[HASH_SLOTS] = {false};
    for (int32_t i = 0; i < slots->count; i++)
        for (int slot = slots->ranges[i].first; slot <= slots->ranges[i].last; slot++)
            all[slot] = true;
    watched_leave_slots(all);
    maps_unlist_slots(all);
}

static void on_redis_trim(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e;
    const redis_ranges *slots = ((const redis_trim *)data)->slots;
    if (sub == REDIS_TRIM_BACKGROUND) unlist(slots);
    hide_all(slots, sub == REDIS_TRIM_STARTED);
}

/* ---- Valkey's imports of a file -------------------------------------------------------------- */

/* What a migration says under a word; NULL: nothing. */
static RedisModuleCallReply *field(RedisModuleCallReply *migration, const char *word) {
    for (size_t i = 0; i + 1 < RedisModule_CallReplyLength(migration); i += 2)
        if (own_call_told(RedisModule_CallReplyArrayElement(migration, i), word))
            return RedisModule_CallReplyArrayElement(migration, i + 1);
    return NULL;
}

static bool is_import_under_way(RedisModuleCallReply *migration) {
    static const char *const over[] = {"success", "failed", "cancelled"};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        if (own_call_told(field(migration, "state"), over[i])) return false;
    return own_call_told(field(migration, "operation"), "IMPORT");
}

/* "0-99 200-200" */
static void hide_ranges(RedisModuleCallReply *ranges) {
    RedisModuleString *copy = ranges ? RedisModule_CreateStringFromCallReply(ranges) : NULL;
    const char *text = copy ? RedisModule_StringPtrLen(copy, NULL) : "";
    int first, last, len;
    for (; sscanf(text, "%d-%d %n", &first, &last, &len) >= 2; text += len) hide(first, last, true);
    if (copy) RedisModule_FreeString(NULL, copy);
}

void migration_loaded(RedisModuleCtx *ctx) {
    loading_aof = false;
    if (!migration_option()) return;
    RedisModuleCallReply *all =
        own_call(ctx, "cluster|getslotmigrations", "c", "GETSLOTMIGRATIONS");
    bool listed = all && RedisModule_CallReplyType(all) == REDISMODULE_REPLY_ARRAY;
    for (size_t i = 0; listed && i < RedisModule_CallReplyLength(all); i++) {
        RedisModuleCallReply *migration = RedisModule_CallReplyArrayElement(all, i);
        if (is_import_under_way(migration)) hide_ranges(field(migration, "slot_ranges"));
    }
    own_call_drop(all);
}

/* ---- the start ------------------------------------------------------------------------------- */

int migration_option(void) {
    int (*options)(void);
    /* Asked for under the name that only Valkey has: in Redis the same bit may come to mean
     * something else. */
    if (RedisModule_GetApi("ValkeyModule_GetModuleOptionsAll", (void *)&options) != REDISMODULE_OK)
        return 0;
    return options() & VALKEY_OPTION_HANDLE_ATOMIC_SLOT_MIGRATION;
}

/* The events have numbers that mean something else in Valkey. */
static bool is_redis_with_it(void) {
    void *function;
    return RedisModule_GetApi("ValkeyModule_GetModuleOptionsAll", &function) != REDISMODULE_OK &&
           RedisModule_GetApi("RedisModule_ClusterCanAccessKeysInSlot", &function) ==
               REDISMODULE_OK;
}

bool migration_awaits_map(int db, uint32_t place) {
    return maps_hidden(place) && !maps_at(db, place) && is_redis_with_it();
}

static int listen(RedisModuleCtx *ctx, uint64_t event, RedisModuleEventCallback told) {
    return RedisModule_SubscribeToServerEvent(ctx, (RedisModuleEvent){event, 1}, told);
}

int migration_start(RedisModuleCtx *ctx) {
    if (migration_option())
        return listen(ctx, VALKEY_EVENT_ATOMIC_SLOT_MIGRATION, on_valkey_migration);
    if (!is_redis_with_it()) return REDISMODULE_OK;
    if (listen(ctx, REDIS_EVENT_SLOT_MIGRATION, on_redis_migration) != REDISMODULE_OK ||
        listen(ctx, REDIS_EVENT_SLOT_MIGRATION_TRIM, on_redis_trim) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    role_listen(on_role);
    migration_hello_start(ctx);
    return REDISMODULE_OK;
}
