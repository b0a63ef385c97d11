/* cmd_ckv.c: CKV STATS | TRAIN | OPTIMIZE | MOVE | MOVING | HELP, CEVICT. */
#include "background/evict.h"
#include "background/mover.h"
#include "background/reencode.h"
#include "background/train.h"
#include "commands/commands.h"
#include "info.h"
#include "server/acl.h"
#include "server/reply.h"
#include "server/role.h"

static int help(RedisModuleCtx *ctx) {
    static const char *const lines[] = {
        "CKV <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "STATS",
        "    Return the figures of INFO ckv as a map.",
        "TRAIN",
        "    Learn new dictionaries from the stored records; reply when they are in use.",
        "OPTIMIZE",
        "    Bring every page to the current dictionaries; reply when done.",
        "MOVE <IN | OUT> <prefix>",
        "    Move the strings under a prefix into ckv, or its records out.",
        "MOVING",
        "    Return how far that is, and what ckv.prefixes has moved.",
        "HELP",
        "    Print this help.",
    };
    long n = (long)(sizeof lines / sizeof *lines);
    RedisModule_ReplyWithArray(ctx, n);
    for (long i = 0; i < n; i++) RedisModule_ReplyWithSimpleString(ctx, lines[i]);
    return REDISMODULE_OK;
}

/* What moves is no string any more to whoever reads it as one, so it is a write of them all. */
static int move(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    size_t len;
    if (argc != 4) return RedisModule_WrongArity(ctx);
    bool in = arg_is(argv[2], "in");
    if (!in && !arg_is(argv[2], "out")) return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    if (!acl_may_write_all(ctx, argv, argc)) return REDISMODULE_OK;
    if (role_follows(ctx)) return RedisModule_ReplyWithError(ctx, ERROR_READONLY);
    const char *prefix = RedisModule_StringPtrLen(argv[3], &len);
    const char *error = mover_move(in ? MOVER_IN : MOVER_OUT, prefix, len);
    return error ? reply_error(ctx, "ERR %s", error) : RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static void reply_progress(RedisModuleCtx *ctx, const char *name, const mover_progress *p) {
    const struct {
        const char *name, *text;
    } texts[] = {{"state", p->state}, {"waits_for", p->waits_for}, {"prefix", p->prefix}};
    const struct {
        const char *name;
        long long count;
    } counts[] = {{"keys", (long long)p->keys},
                  {"looked_at", (long long)p->looked_at},
                  {"moved", (long long)p->moved},
                  {"left", (long long)p->left},
                  {"saved_bytes", p->saved_bytes},
                  {"seconds", (long long)p->seconds},
                  {"seconds_left", (long long)p->seconds_left}};
    size_t text_count = sizeof texts / sizeof *texts, count = sizeof counts / sizeof *counts;
    RedisModule_ReplyWithCString(ctx, name);
    RedisModule_ReplyWithMap(ctx, (long)(text_count + count));
    for (size_t i = 0; i < text_count; i++) {
        RedisModule_ReplyWithCString(ctx, texts[i].name);
        RedisModule_ReplyWithCString(ctx, texts[i].text);
    }
    for (size_t i = 0; i < count; i++) {
        RedisModule_ReplyWithCString(ctx, counts[i].name);
        RedisModule_ReplyWithLongLong(ctx, counts[i].count);
    }
}

static int moving(RedisModuleCtx *ctx) {
    mover_progress in = mover_progress_of(MOVER_IN), out = mover_progress_of(MOVER_OUT);
    RedisModule_ReplyWithMap(ctx, MOVER_WAYS);
    reply_progress(ctx, "in", &in);
    reply_progress(ctx, "out", &out);
    return REDISMODULE_OK;
}

int cmd_ckv(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc > 1 && arg_is(argv[1], "move")) return move(ctx, argv, argc);
    if (argc != 2) return RedisModule_WrongArity(ctx);
    if (!acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    if (arg_is(argv[1], "stats")) return info_reply(ctx);
    if (arg_is(argv[1], "train")) return train_now(ctx);
    if (arg_is(argv[1], "optimize")) return reencode_now(ctx);
    if (arg_is(argv[1], "moving")) return moving(ctx);
    if (arg_is(argv[1], "help")) return help(ctx);
    return reply_error(ctx, "ERR unknown subcommand '%.128s'. Try CKV HELP.",
                       RedisModule_StringPtrLen(argv[1], NULL));
}

int cmd_cevict(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 1) return RedisModule_WrongArity(ctx);
    if (!acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    int db = RedisModule_GetSelectedDb(ctx);
    uint64_t evicted = evict_now(ctx);
    /* In MULTI or a script the commands behind it are in the same database still. */
    RedisModule_SelectDb(ctx, db);
    return RedisModule_ReplyWithLongLong(ctx, (long long)evicted);
}
