/* filter.c: the module's one command filter. See filter.h. */
#include "server/filter.h"

static RedisModuleCommandFilterFunc steps[FILTER_STEPS];
static RedisModuleCommandFilter *registered;

static void run_steps(RedisModuleCommandFilterCtx *command) {
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
        registered =
            RedisModule_RegisterCommandFilter(ctx, run_steps, REDISMODULE_CMDFILTER_NOSELF);
    } else if (!wanted && registered) {
        RedisModule_UnregisterCommandFilter(ctx, registered);
        registered = NULL;
    }
}

bool filter_has(filter_step step) {
    return steps[step] != NULL;
}
