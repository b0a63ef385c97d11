/* filter.c: the module's one command filter. See filter.h. */
#include "server/filter.h"

#include "ckv.h"
#include "server/own_call.h"

static RedisModuleCommandFilterFunc steps[FILTER_STEPS];
static RedisModuleCommandFilter *registered;

static void run_steps(RedisModuleCommandFilterCtx *command) {
    if (own_call_comes(RedisModule_CommandFilterArgGet(command, 0))) return;
    ckv.disturbed++;
    for (int i = 0; i < FILTER_STEPS; i++)
        if (steps[i]) steps[i](command);
}

static bool any_wanted(void) {
    for (int i = 0; i < FILTER_STEPS; i++)
        if (steps[i]) return true;
    return false;
}

void filter_set(RedisModuleCtx *ctx, filter_step step, RedisModuleCommandFilterFunc run) {
    steps[step] = run;
    bool wanted = any_wanted();
    if (wanted && !registered) {
        registered = RedisModule_RegisterCommandFilter(ctx, run_steps, 0);
        own_call_unseen();
    } else if (!wanted && registered) {
        RedisModule_UnregisterCommandFilter(ctx, registered);
        registered = NULL;
    }
}

RedisModuleString **filter_args(RedisModuleCommandFilterCtx *command, int *argc) {
    *argc = RedisModule_CommandFilterArgsCount(command);
    RedisModuleString **argv = RedisModule_Alloc((size_t)*argc * sizeof *argv);
    for (int i = 0; i < *argc; i++)
        argv[i] = (RedisModuleString *)RedisModule_CommandFilterArgGet(command, i);
    return argv;
}

bool filter_has(filter_step step) {
    return steps[step] != NULL;
}
