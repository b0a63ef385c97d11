/* serve_run.c: see serve_run.h. */
#include "transparent/serve_run.h"

#include "keyspace/native.h"
#include "keyspace/places.h"
#include "server/acl.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "server/version.h"
#include "server/within.h"

#include <string.h>

static RedisModuleString *run, *run_ro;
static const char *called; /* the command that ours stands for */
static bool runs;          /* it is called now: the slot is that of its keys */

static RedisModuleString *string_of(const char *text) {
    return RedisModule_CreateString(NULL, text, strlen(text));
}

void serve_run_start(void) {
    run = string_of(SERVE_RUN_NAME);
    run_ro = string_of(SERVE_RUN_RO_NAME);
}

void serve_run_give_back(void) {
    RedisModule_FreeString(NULL, run);
    RedisModule_FreeString(NULL, run_ro);
}

bool serve_run_has_to(void) {
    return places_are_slots() && !version_is_7_0() && within_script() && !runs;
}

/* Valkey 9.1 has room for one more argument of what a script calls. So the name is kept here; what
 * has been looked at runs at once. */
void serve_run_instead(filtered *f, const char *name, bool reads, RedisModuleString *key) {
    called = name;
    RedisModule_CommandFilterArgInsert(f, 1, key);
    filter_rename(f, reads ? run_ro : run);
}

/* Whether the script's user may is asked here; on the primary's behalf anybody may. The filter is
 * to see it: this is no call of our own. */
int serve_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argv[0] != run && argv[0] != run_ro) return reply_unknown_command(ctx);
    bool before = runs;
    runs = true;
    RedisModuleCallReply *reply =
        RedisModule_Call(ctx, own_call_name(called), acl_any_user(ctx) ? "!CSE0v" : "!SE0v",
                         argv + 2, (size_t)(argc - 2));
    runs = before;
    return native_reply(ctx, reply);
}
