/* cmd_key.c: CDEL (and CUNLINK), CDELEX, CEXISTS (and CTOUCH), CDBSIZE. */
#include "commands/commands.h"
#include "commands/condition.h"
#include "keyspace/lookup.h"
#include "keyspace/native.h"
#include "keyspace/renamed_maps.h"
#include "keyspace/replicate.h"
#include "server/acl.h"
#include "server/clock.h"
#include "server/reply.h"
#include "server/role.h"

int cmd_cdel(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!lookup_arrived(ctx, argv[1])) return REDISMODULE_OK;
    int64_t now_ms = clock_now_ms();
    long long deleted = 0, records = 0;
    bool changed = false, sent_native = native_sent(ctx);
    for (int i = 1; i < argc; i++) {
        record r;
        lookup_begin(ctx, argv[i], now_ms, &r);
        lookup_answer answer = lookup_finish_of_many(&r, sent_native);
        if (answer == LOOKUP_NATIVE) {
            long long n = native_count_of(ctx, argv[i]);
            deleted += n;
            changed |= n > 0;
        }
        if (answer != LOOKUP_DONE) continue;
        /* On a replica, what has expired is still stored: the primary says that it goes. Where it
         * is left because nobody might be told, it stays. */
        if (r.found || (r.there && !role_may_expire(ctx))) {
            bool existed = r.found;
            record_delete(&r);
            if (existed) record_notify(&r, REDISMODULE_NOTIFY_GENERIC, "del");
            deleted += existed;
            records++;
            changed = true;
        }
    }
    if (changed && sent_native)
        replicate_native_delete(ctx, argv + 1, (size_t)argc - 1);
    else if (changed)
        replicate_delete(ctx, argv + 1, (size_t)argc - 1);
    replicate_count(ctx, records - 1);
    return RedisModule_ReplyWithLongLong(ctx, deleted);
}

static int delex_native(RedisModuleCtx *ctx, RedisModuleString *key, const condition *c) {
    bool holds;
    if (!condition_check_native(c, ctx, key, &holds)) return REDISMODULE_OK;
    if (!holds) return RedisModule_ReplyWithLongLong(ctx, 0);
    return native_reply(ctx, native_call(ctx, NATIVE_REPLICATES, "del", &key, 1));
}

int cmd_cdelex(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc == 2) return cmd_cdel(ctx, argv, argc);
    condition c = {0};
    if (argc != 4 || !condition_word(argv[2], &c))
        return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    c.value = argv[3];
    record r;
    bool holds;
    lookup_answer answer = lookup_quietly(ctx, argv[1], clock_now_ms(), &r);
    if (answer == LOOKUP_NATIVE) return delex_native(ctx, argv[1], &c);
    if (!lookup_reply_answer(&r, argv, argc, answer)) return REDISMODULE_OK;
    if (!r.found) return RedisModule_ReplyWithLongLong(ctx, 0);
    if (!condition_check(&c, &r, &holds)) return REDISMODULE_OK;
    if (holds) record_delete_by_command(&r);
    return RedisModule_ReplyWithLongLong(ctx, holds);
}

static int count_there(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool uses) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!lookup_arrived(ctx, argv[1])) return REDISMODULE_OK;
    int64_t now_ms = clock_now_ms();
    long long found = 0;
    bool sent_native = native_sent(ctx);
    for (int i = 1; i < argc; i++) {
        record r;
        lookup_begin(ctx, argv[i], now_ms, &r);
        lookup_answer answer = lookup_finish_of_many(&r, sent_native);
        if (answer == LOOKUP_NATIVE) found += native_count_of(ctx, argv[i]);
        if (answer != LOOKUP_DONE) continue;
        if (uses)
            record_note_touch(&r);
        else
            record_note_look(&r);
        found += r.found;
    }
    return RedisModule_ReplyWithLongLong(ctx, found);
}

int cmd_cexists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return count_there(ctx, argv, argc, false);
}

int cmd_ctouch(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return count_there(ctx, argv, argc, true);
}

int cmd_cdbsize(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 1) return RedisModule_WrongArity(ctx);
    bool sent_native = native_sent(ctx);
    if (!sent_native && !acl_may_read_all(ctx, argv, argc)) return REDISMODULE_OK;
    renamed_maps_find();
    uint64_t records = maps_totals_of(RedisModule_GetSelectedDb(ctx)).totals.records;
    if (sent_native) records += native_count(ctx);
    return RedisModule_ReplyWithLongLong(ctx, (long long)records);
}
