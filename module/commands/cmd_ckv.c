/* cmd_ckv.c: CKV STATS | TRAIN | OPTIMIZE | HELP, CEVICT. */
#include "server/acl.h"
#include "commands/commands.h"
#include "background/reencode.h"
#include "background/evict.h"
#include "info.h"
#include "server/reply.h"
#include "background/train.h"

static int help(RedisModuleCtx *ctx) {
    static const char *const lines[] = {
        "CKV <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "STATS",
        "    Return the figures of INFO ckv as a map.",
        "TRAIN",
        "    Learn new dictionaries from the stored records; reply when they are in use.",
        "OPTIMIZE",
        "    Bring every page to the current dictionaries; reply when done.",
        "HELP",
        "    Print this help.",
    };
    long n = (long)(sizeof lines / sizeof *lines);
    RedisModule_ReplyWithArray(ctx, n);
    for (long i = 0; i < n; i++) RedisModule_ReplyWithSimpleString(ctx, lines[i]);
    return REDISMODULE_OK;
}

int cmd_ckv(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    if (!acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    if (arg_is(argv[1], "stats")) return info_reply(ctx);
    if (arg_is(argv[1], "train")) return train_now(ctx);
    if (arg_is(argv[1], "optimize")) return reencode_now(ctx);
    if (arg_is(argv[1], "help")) return help(ctx);
    return reply_error(ctx, "ERR unknown subcommand '%.128s'. Try CKV HELP.",
                       RedisModule_StringPtrLen(argv[1], NULL));
}

int cmd_cevict(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 1) return RedisModule_WrongArity(ctx);
    if (!acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    return RedisModule_ReplyWithLongLong(ctx, (long long)evict_now(ctx));
}
