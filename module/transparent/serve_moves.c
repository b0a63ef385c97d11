/* serve_moves.c: what replicas and an AOF are told beside the server's own commands. See
 * serve_moves.h. */
#include "transparent/serve_moves.h"

#include "keyspace/aof_form.h"
#include "keyspace/followed.h"
#include "keyspace/move.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/replicate.h"
#include "server/acl.h"
#include "server/reply.h"
#include "server/role.h"
#include "transparent/lent.h"

#include <stdio.h>

/* ---- a record or string that moved ----------------------------------------------------------- */

int serve_move_out(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RedisModule_WrongArity(ctx);
    if (role_repeats(ctx)) lent_no_more((uint64_t)RedisModule_GetSelectedDb(ctx), argv[1]);
    move_result result = move_out(ctx, argv[1], MOVE_ANY);
    /* If there is no record, it may have moved when nobody could be told. */
    if (result != MOVE_TAKEN) replicate_moved_out(ctx, argv[1]);
    return RedisModule_ReplyWithLongLong(ctx, result == MOVE_DONE);
}

int serve_move_in(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2 && argc != 3) return RedisModule_WrongArity(ctx);
    if (argc == 3 && !arg_is(argv[2], "served"))
        return RedisModule_ReplyWithError(ctx, ERROR_SYNTAX);
    bool wanted = argc == 2 || prefixes_match_name(argv[1]) == PREFIX_SERVING;
    bool moved = wanted && move_in(ctx, argv[1]) == MOVE_DONE;
    if (moved) replicate_moved_in(ctx, argv[1]);
    return RedisModule_ReplyWithLongLong(ctx, moved);
}

/* The filter's, without a key that the server would know of: while a slot is moved, it lets nobody
 * call a command for a key of it that is a record. From a user they would be a way around his
 * rules. */
static bool refuse_user(RedisModuleCtx *ctx) {
    RedisModuleString *user = acl_user_name(ctx);
    if (!user) return false;
    RedisModule_FreeString(ctx, user);
    reply_unknown_command(ctx);
    return true;
}

/* Whether what moved when nobody could be told is gone: the server tells of what has expired, but
 * whoever loads an AOF has a record still. */
static bool has_gone(RedisModuleCtx *ctx, RedisModuleString *key) {
    return role_may_expire(ctx) && !move_has_record(ctx, key) && !native_exists(ctx, key);
}

int serve_move_out_unasked(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (refuse_user(ctx)) return REDISMODULE_OK;
    if (argc != 2 || !has_gone(ctx, argv[1])) return serve_move_out(ctx, argv, argc);
    replicate_native_delete(ctx, argv + 1, 1);
    return RedisModule_ReplyWithLongLong(ctx, 0);
}

int serve_move_back_unasked(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (refuse_user(ctx)) return REDISMODULE_OK;
    if (argc != 2) return RedisModule_WrongArity(ctx);
    move_result result = move_back(ctx, argv[1], NULL);
    /* A record alone may have come back when nobody could be told. */
    if (result == MOVE_DONE || (result == MOVE_NOTHING && move_has_record(ctx, argv[1])))
        replicate_moved_in(ctx, argv[1]);
    return RedisModule_ReplyWithLongLong(ctx, result == MOVE_DONE);
}

/* ---- what an AOF says that was served -------------------------------------------------------- */

/* A command of an AOF: its arguments, of which every step-th is a key. */
typedef struct plain {
    const char *name;
    RedisModuleString **args;
    int count, step;
} plain;

/* Whether it is served once more. */
static bool serves_again(const plain *p) {
    if (!aof_form_file_had_records()) return false;
    for (int i = 0; i < p->count; i += p->step)
        if (prefixes_match_name(p->args[i]) == PREFIX_NONE) return false;
    return true;
}

/* Notes by argument which keys hold values of the server's own. False: none does. */
static bool look_for_native(RedisModuleCtx *ctx, const plain *p, bool *native) {
    bool any = false;
    for (int i = 0; i < p->count; i += p->step) any |= native[i] = native_exists(ctx, p->args[i]);
    return any;
}

static RedisModuleCallReply *call_ours(RedisModuleCtx *ctx, const plain *p) {
    char ours[32];
    snprintf(ours, sizeof ours, "C%s", p->name);
    return native_call(ctx, NATIVE_KEEPS_SILENT, ours, p->args, (size_t)p->count);
}

static RedisModuleCallReply *call_native(RedisModuleCtx *ctx, const plain *p) {
    for (int i = 0; i < p->count; i += p->step) move_out(ctx, p->args[i], MOVE_ANY);
    return native_call(ctx, NATIVE_KEEPS_SILENT, p->name, p->args, (size_t)p->count);
}

/* What the server that told it had in its maps is to be there again; in a cluster the file tells
 * what else has moved in. Of a value of the server's own our command would call its own, and a
 * command that is called by one that is called is refused in a cluster that is not up yet. */
static RedisModuleCallReply *serve_again(RedisModuleCtx *ctx, const plain *p) {
    bool *native = RedisModule_Calloc((size_t)p->count, sizeof *native);
    bool any = look_for_native(ctx, p, native), told = places_are_slots();
    RedisModuleCallReply *reply = any ? call_native(ctx, p) : call_ours(ctx, p);
    for (int i = 0; any && i < p->count; i += p->step)
        if (!told || !native[i]) move_in(ctx, p->args[i]);
    RedisModule_Free(native);
    return reply;
}

/* From anybody but an AOF it would be a way around the rules of users. */
int serve_plain(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long step;
    if (argc < 4) return RedisModule_WrongArity(ctx);
    if (!role_loads(ctx))
        return RedisModule_ReplyWithError(ctx, "ERR CPLAIN is for append-only files");
    if (RedisModule_StringToLongLong(argv[1], &step) != REDISMODULE_OK || step < 1 || step > argc)
        return RedisModule_ReplyWithError(ctx, ERROR_INTEGER);
    plain p = {RedisModule_StringPtrLen(argv[2], NULL), argv + 3, argc - 3, (int)step};
    return native_reply(ctx, serves_again(&p) ? serve_again(ctx, &p) : call_native(ctx, &p));
}

int serve_prefixes(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    size_t len;
    if (argc != 2 && argc != 3) return RedisModule_WrongArity(ctx);
    const char *text = RedisModule_StringPtrLen(argv[1], &len);
    if (role_loads(ctx))
        prefixes_add_of_file(text, len);
    else if (role_mirrors() && role_repeats(ctx))
        followed_told(text, len);
    else if (acl_any_user(ctx))
        return RedisModule_ReplyWithError(ctx,
                                          "ERR CPREFIXES is for append-only files and replicas");
    else
        RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}
