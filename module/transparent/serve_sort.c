/* serve_sort.c: see serve_sort.h. */
#include "transparent/serve_sort.h"

#include "keyspace/native.h"
#include "keyspace/native_calls.h"
#include "server/acl.h"
#include "server/own_call.h"
#include "server/renamed.h"
#include "transparent/leave.h"
#include "transparent/sort_keys.h"

int serve_sort(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    const char *name = native_name(ctx);
    leave_how before = leave_begin((leave_how){.runs_later = false});
    sort_keys_leave(argv, argc, leave_key);
    leave_begin(before);
    native_note_call(name);
    /* As the user: what a pattern may reach is in the rules for SORT, and not in those for keys. */
    RedisModuleString *user = acl_user_name(ctx);
    RedisModuleCallReply *reply =
        own_call(ctx, renamed_to(name), user ? "!CE0v" : "!E0v", argv + 1, (size_t)argc - 1);
    if (user) RedisModule_FreeString(ctx, user);
    return native_reply(ctx, native_note_reply(name, reply));
}
