/* migration_hello.c: who may import slots. See migration_hello.h. */
#include "keyspace/migration_hello.h"

#include "keyspace/maps.h"
#include "keyspace/prefixes.h"
#include "server/clock.h"
#include "server/names.h"
#include "server/own_call.h"
#include "server/timer.h"

#include <string.h>

#define HELLO 0 /* the type of the message */

#define LOOK_MS  1000
#define EVERY_US 20000000
/* While nodes come and go each hears it sooner: who is new has no connections yet. */
#define NEWS_US 5000000
/* A hello is good for so long. */
#define GOOD_US (3 * EVERY_US)
/* How often the log says that a node gets nothing. */
#define TOLD_US 60000000

/* ---- saying hello, and hearing it ------------------------------------------------------------ */

static RedisModuleDict *heard; /* node id -> when, by the clock for measuring; NULL: none */
static timer looks;

static void on_hello(RedisModuleCtx *ctx, const char *sender, uint8_t type,
                     const unsigned char *payload, uint32_t len) {
    (void)ctx, (void)type, (void)payload, (void)len;
    names_put(&heard, sender, REDISMODULE_NODE_ID_LEN, (void *)(uintptr_t)clock_monotonic_us());
}

static bool has_said_hello(const char *id) {
    uintptr_t at_us = (uintptr_t)names_get(heard, id, REDISMODULE_NODE_ID_LEN);
    return at_us > 0 && clock_monotonic_us() - at_us < GOOD_US;
}

void migration_hello_say(RedisModuleCtx *ctx, const char *node) {
    RedisModule_SendClusterMessage(ctx, node, HELLO, "", 0);
}

static void look(RedisModuleCtx *ctx, void *unused) {
    static size_t nodes;
    static uint64_t changed_us, said_us;
    uint64_t now_us = clock_monotonic_us();
    (void)unused;
    if (nodes != RedisModule_GetClusterSize()) changed_us = now_us;
    nodes = RedisModule_GetClusterSize();
    if (nodes > 1 && (now_us - changed_us < NEWS_US || now_us - said_us >= EVERY_US)) {
        migration_hello_say(ctx, NULL);
        said_us = now_us;
    }
    timer_set(ctx, &looks, LOOK_MS);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

/* The one that has begun: the server has one at a time. */
static struct {
    bool unasked; /* whether the other node has said hello */
    char target[REDISMODULE_NODE_ID_LEN + 1], task[REDISMODULE_NODE_ID_LEN + 1];
} begun;

static timer soon;

static void tell(const char *target) {
    static uint64_t told_us;
    uint64_t now_us = clock_monotonic_us();
    if (told_us > 0 && now_us - told_us < TOLD_US) return;
    told_us = now_us;
    ckv_log("warning",
            "slots do not go to node %s: it has not said that it has this module, or it is of a "
            "version that does not say so. It would drop their records. Load the module there, or "
            "move the slots by MIGRATE (redis-cli --cluster reshard)",
            target);
}

static void check(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    bool due = begun.unasked, loses = maps_any() || prefixes_any();
    begun.unasked = false;
    if (!due || !loses || has_said_hello(begun.target)) return;
    ckv.stats.migrations_refused++;
    tell(begun.target);
    own_call_drop(
        own_call(ctx, "cluster|migration", "cccc", "MIGRATION", "CANCEL", "ID", begun.task));
}

void migration_hello_expect(const char *target, const char *task) {
    begun.unasked = true;
    strncpy(begun.target, target, REDISMODULE_NODE_ID_LEN);
    strncpy(begun.task, task, REDISMODULE_NODE_ID_LEN);
}

void migration_hello_forget(void) {
    begun.unasked = false;
}

void migration_hello_child(RedisModuleCtx *ctx) {
    if (begun.unasked) timer_set(ctx, &soon, 0);
}

void migration_hello_start(RedisModuleCtx *ctx) {
    if (!(RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_CLUSTER)) return;
    timer_register(ctx, &soon, check);
    timer_register(ctx, &looks, look);
    timer_set(ctx, &looks, LOOK_MS);
    RedisModule_RegisterClusterMessageReceiver(ctx, HELLO, on_hello);
}
