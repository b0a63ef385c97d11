/* held.c: clients that wait for the records of a slot. See held.h. */
#include "keyspace/held.h"

#include "keyspace/maps.h"
#include "keyspace/tryagain.h"
#include "server/array.h"
#include "server/clock.h"
#include "server/pause.h"
#include "server/reply.h"
#include "server/role.h"
#include "server/timer.h"
#include "server/waiting.h"

#include <string.h>

#define LIMIT_US 1000000
#define STEP_MS  10
#define LOOK     10 /* steps, until it is asked whether slots were given back */
/* Of a slot all who are held ask at once. */
#define DOWN_US 1000

typedef struct held {
    RedisModuleBlockedClient *client;
    int db;
    uint32_t place;
    uint64_t since_us;
} held;

static struct {
    held *list;
    size_t count, room;
} all;

static struct {
    struct {
        char *name;
        RedisModuleCmdFunc function;
    } * list;
    size_t count;
} commands;

static timer steps;

void held_know(const char *name, RedisModuleCmdFunc function) {
    size_t i = commands.count++, len = strlen(name) + 1;
    commands.list = RedisModule_Realloc(commands.list, commands.count * sizeof *commands.list);
    commands.list[i].name = RedisModule_Alloc(len);
    memcpy(commands.list[i].name, name, len);
    commands.list[i].function = function;
}

void held_give_back(void) {
    for (size_t i = 0; i < commands.count; i++) RedisModule_Free(commands.list[i].name);
    RedisModule_Free(commands.list);
}

static RedisModuleCmdFunc function_of(RedisModuleCtx *ctx) {
    const char *name = RedisModule_GetCurrentCommandName(ctx);
    for (size_t i = 0; name && i < commands.count; i++)
        if (!strcmp(name, commands.list[i].name)) return commands.list[i].function;
    return NULL;
}

/* Nothing may be written during CLIENT PAUSE and before slots or a primary's role change hands, nor
 * behind that (Valkey 9.1 lets clients wait on), nor while the cluster is down, and the server does
 * not look at that here. */
static int run_again(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (pause_holds() || role_follows(ctx) || tryagain_is_down(DOWN_US))
        return RedisModule_ReplyWithError(ctx, ERROR_MOVING);
    return function_of(ctx)(ctx, argv, argc);
}

static bool tracks_keys(RedisModuleCtx *ctx) {
    RedisModuleClientInfo info = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
    return RedisModule_GetClientInfoById(&info, RedisModule_GetClientId(ctx)) != REDISMODULE_OK ||
           info.flags & REDISMODULE_CLIENTINFO_FLAG_TRACKING;
}

static bool can_wait(RedisModuleCtx *ctx) {
    return waiting_possible(ctx) && !RedisModule_IsBlockedReplyRequest(ctx) && function_of(ctx) &&
           !tracks_keys(ctx);
}

void held_reply(RedisModuleCtx *ctx, int db, uint32_t place) {
    if (!can_wait(ctx)) {
        RedisModule_ReplyWithError(ctx, ERROR_MOVING);
        return;
    }
    all.list = array_grow(all.list, all.count, &all.room, sizeof *all.list);
    if (all.count == 0) timer_set(ckv.ctx, &steps, STEP_MS);
    RedisModuleBlockedClient *client = RedisModule_BlockClient(ctx, run_again, NULL, NULL, 0);
    all.list[all.count++] = (held){client, db, place, clock_monotonic_us()};
}

/* Whether a command for this place would be served now, or (`look`) never will be. */
static bool is_decided(int db, uint32_t place, bool look) {
    return maps_at(db, place) || !tryagain_may_be_elsewhere(ckv.ctx, db, place) ||
           (look && tryagain_is_given_back(place));
}

/* Lets those go who need not wait any more. Many wait for the same slot: it is asked about once. */
static void step(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    uint64_t now_us = clock_monotonic_us();
    size_t kept = 0;
    int db = -1;
    uint32_t place = 0;
    static unsigned count;
    bool decided = false, look = ++count % LOOK == 0;
    for (size_t i = 0; i < all.count; i++) {
        held h = all.list[i];
        if (h.db != db || h.place != place) decided = is_decided(h.db, h.place, look);
        db = h.db;
        place = h.place;
        if (decided || now_us - h.since_us >= LIMIT_US)
            RedisModule_UnblockClient(h.client, NULL);
        else
            all.list[kept++] = h;
    }
    all.count = kept;
    if (kept > 0) timer_set(ctx, &steps, STEP_MS);
}

void held_start(RedisModuleCtx *ctx) {
    timer_register(ctx, &steps, step);
}
