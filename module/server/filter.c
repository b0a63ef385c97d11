/* filter.c: the module's one command filter. See filter.h. */
#include "server/filter.h"

#include "ckv.h"
#include "server/own_call.h"
#include "server/version.h"

static RedisModuleCommandFilterFunc steps[FILTER_STEPS];
static RedisModuleCommandFilter *registered;
static bool renews; /* the names of own calls: see filter_renew_begin() */
static void (*attend_begin)(RedisModuleCtx *ctx);
static bool (*attend_look)(filtered *command);
static uint64_t seen;
static bool attended; /* a step is wanted that looks for keys, and somebody attends */

static void renew_name(filtered *command) {
    const RedisModuleString *name = RedisModule_CommandFilterArgGet(command, 0);
    RedisModule_CommandFilterArgReplace(command, 0, RedisModule_CreateStringFromString(NULL, name));
}

static void run_steps(filtered *command) {
    if (own_call_comes(RedisModule_CommandFilterArgGet(command, 0))) {
        if (renews) renew_name(command);
        return;
    }
    ckv.disturbed++;
    seen++;
    if (attended && !attend_look(command)) return;
    for (int i = 0; i < FILTER_STEPS; i++)
        if (steps[i]) steps[i](command);
}

static bool any_wanted(void) {
    for (int i = 0; i < FILTER_STEPS; i++)
        if (steps[i]) return true;
    return false;
}

static void attend(RedisModuleCtx *ctx) {
    bool before = attended;
    attended =
        attend_look && (steps[FILTER_MAKE_ROOM] || steps[FILTER_SERVE] || steps[FILTER_HOLD]);
    if (attended && !before) attend_begin(ctx);
}

void filter_attend(void (*begin)(RedisModuleCtx *ctx), bool (*look)(filtered *command)) {
    attend_begin = begin;
    attend_look = look;
}

static bool has_to_renew(RedisModuleCtx *ctx) {
    return version_is_valkey(VALKEY_9_0) &&
           RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_CLUSTER;
}

static void pass(filtered *command) {
    (void)command;
}

void filter_set(RedisModuleCtx *ctx, filter_step step, RedisModuleCommandFilterFunc run) {
    steps[step] = run;
    attend(ctx);
    bool wanted = any_wanted();
    if (wanted && !registered) {
        renews = has_to_renew(ctx);
        registered = RedisModule_RegisterCommandFilter(ctx, run_steps, 0);
        own_call_unseen();
    } else if (!wanted && registered) {
        RedisModule_UnregisterCommandFilter(ctx, registered);
        registered = NULL;
    }
}

uint64_t filter_seen(void) {
    return registered ? seen : 0;
}

bool filter_tells_sender(void) {
    return RedisModule_CommandFilterGetClientId != NULL;
}

uint64_t filter_sender(filtered *command) {
    return filter_tells_sender() ? RedisModule_CommandFilterGetClientId(command) : 0;
}

int filter_argc(filtered *command) {
    return RedisModule_CommandFilterArgsCount(command);
}

RedisModuleString *filter_arg(filtered *command, int i) {
    return (RedisModuleString *)RedisModule_CommandFilterArgGet(command, i);
}

RedisModuleString **filter_args(filtered *command, int *argc) {
    *argc = filter_argc(command);
    RedisModuleString **argv = RedisModule_Alloc((size_t)*argc * sizeof *argv);
    for (int i = 0; i < *argc; i++) argv[i] = filter_arg(command, i);
    return argv;
}

void filter_rename(filtered *command, RedisModuleString *name) {
    RedisModule_RetainString(NULL, name);
    RedisModule_CommandFilterArgReplace(command, 0, name);
}

bool filter_renew_begin(RedisModuleCtx *ctx) {
    if (registered || !has_to_renew(ctx)) return false;
    filter_set(ctx, FILTER_RENEW, pass);
    return true;
}

void filter_renew_end(RedisModuleCtx *ctx) {
    filter_set(ctx, FILTER_RENEW, NULL);
}
