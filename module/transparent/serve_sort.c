/* serve_sort.c: see serve_sort.h. */
#include "transparent/serve_sort.h"

#include "keyspace/native.h"
#include "server/acl.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "server/within.h"
#include "transparent/leave.h"
#include "transparent/sort_keys.h"

/* What is a set and not to be sorted is sorted in scripts all the same, by what its members are, so
 * that it has the same order everywhere. In a call of ours the server does not know that. */
static bool needs_order(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (!within_script()) return false;
    if (!sort_keys_in_order(argv, argc)) return false;
    return native_type(ctx, argv[1]) == REDISMODULE_KEYTYPE_SET;
}

/* What to call SORT with: `alpha` in the place of each BY. Returns how many arguments that are. */
static int put_in_order(RedisModuleString **argv, int argc, RedisModuleString *alpha,
                        RedisModuleString **ordered) {
    int count = 0;
    ordered[count++] = argv[0];
    ordered[count++] = argv[1];
    for (int i = 2, next; i < argc; i = next) {
        next = i + sort_keys_words(argv[i]);
        if (arg_is(argv[i], "by") && next <= argc)
            ordered[count++] = alpha;
        else
            while (i < next && i < argc) ordered[count++] = argv[i++];
    }
    return count;
}

/* Another module that calls may have nobody told: what moves out is told again before it changes.
 */
static bool may_be_called(void) {
    return true;
}

int serve_sort(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    const char *name = native_name(ctx);
    leave_how before = leave_begin((leave_how){.is_called = may_be_called});
    sort_keys_leave(ctx, argv, argc, leave_key);
    leave_begin(before);
    RedisModuleString *alpha = NULL;
    if (needs_order(ctx, argv, argc)) {
        RedisModuleString **ordered = RedisModule_PoolAlloc(ctx, (size_t)argc * sizeof *argv);
        alpha = RedisModule_CreateString(ctx, "ALPHA", 5);
        argc = put_in_order(argv, argc, alpha, ordered);
        argv = ordered;
    }
    /* As the user: what a pattern may reach is in the rules for SORT, and not in those for keys. */
    RedisModuleString *user = acl_user_name(ctx);
    RedisModuleCallReply *reply =
        own_call(ctx, name, user ? "!CE0v" : "!E0v", argv + 1, (size_t)argc - 1);
    if (user) RedisModule_FreeString(ctx, user);
    if (alpha) RedisModule_FreeString(ctx, alpha);
    return native_reply(ctx, reply);
}
