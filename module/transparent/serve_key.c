/* serve_key.c: commands about a key. See serve_key.h. */
#include "transparent/serve_key.h"

#include "keyspace/long_strings.h"
#include "keyspace/lookup.h"
#include "keyspace/move.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/untold.h"
#include "server/clock.h"
#include "server/reply.h"

#define NUMBER_MAX_LEN 20 /* of 64 bits, in digits */

int serve_type(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    record r;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!lookup_key(ctx, argv, argc, clock_now_ms(), &r)) return REDISMODULE_OK;
    record_note_look(&r);
    return RedisModule_ReplyWithSimpleString(ctx, r.found ? "string" : "none");
}

/* What has expired is found to have, as by any command. */
static int lend(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, RedisModuleString *key) {
    record r;
    lookup_answer answer = lookup_quietly(ctx, key, clock_now_ms(), &r);
    if (!lookup_reply_answer(&r, argv, argc, answer)) return REDISMODULE_OK;
    move_lent as;
    bool lent = r.found && move_lend(ctx, key, &as) == MOVE_DONE;
    native_run(ctx, argv, argc);
    if (!lent) return REDISMODULE_OK;
    if (move_back(ctx, key, &as) != MOVE_DONE) {
        untold_moved_out(ctx, key);
        return REDISMODULE_OK;
    }
    ckv.stats.moved_out--; /* nobody has seen it outside */
    ckv.stats.moved_in--;
    return REDISMODULE_OK;
}

int serve_dump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2) return RedisModule_WrongArity(ctx);
    return lend(ctx, argv, argc, argv[1]);
}

/* ---- OBJECT and MEMORY USAGE ----------------------------------------------------------------- */

/* Redis stores such a value as a number; moved out, it is text. */
static bool is_stored_as_number(const record *r) {
    size_t len;
    long long n;
    if (map_value_len(r->in->m, &r->pos) > NUMBER_MAX_LEN) return false;
    const uint8_t *bytes = map_value(r->in->m, &r->pos, &len);
    if (!bytes) return false;
    RedisModuleString *value = RedisModule_CreateString(r->ctx, (const char *)bytes, len);
    bool is = RedisModule_StringToLongLong(value, &n) == REDISMODULE_OK;
    RedisModule_FreeString(r->ctx, value);
    return is;
}

/* To lend a long value is to decode all of it, and to encode it anew. What the server would say of
 * it is known by its length, of one so long on every server. */
static bool is_long(const record *r) {
    size_t len = map_value_len(r->in->m, &r->pos);
    return len > LONG_STRING && len != CODEC_NO_ROOM;
}

/* An answer: a word or, if it is NULL, a number. */
typedef struct answer {
    const char *word;
    long long number;
} answer;

/* Beside the bytes of a string and of its key, about. */
#define STRING_HEAD  10
#define OBJECT_BYTES 64

/* The memory that the allocator would give is not touched. */
static long long usage_of_long(const record *r) {
    size_t bytes = STRING_HEAD + map_value_len(r->in->m, &r->pos);
    void *block = RedisModule_TryAlloc(bytes);
    if (block) bytes = ckv.mem.usable(block);
    RedisModule_Free(block);
    return (long long)(bytes + r->key.len + OBJECT_BYTES);
}

#define FREQ_OF_NEW 5 /* as the server sets out with */

static answer answer_of_long(const record *r, RedisModuleString *asked) {
    if (arg_is(asked, "encoding")) return (answer){"raw", 0};
    if (arg_is(asked, "refcount")) return (answer){NULL, 1};
    if (arg_is(asked, "freq")) return (answer){NULL, FREQ_OF_NEW};
    return (answer){NULL, arg_is(asked, "idletime") ? 0 : usage_of_long(r)};
}

/* The key that the server is asked about instead: that of the map. To say what one takes that has
 * millions of records takes long: then, of a key that it does not have. In a cluster no map has so
 * many, and what is not there may be another node's. */
static RedisModuleString *asked_instead(const record *r, RedisModuleString *asked) {
    bool missing = arg_is(asked, "usage") && !places_are_slots();
    return missing ? RedisModule_CreateStringFromString(NULL, r->name) : places_name(r->place);
}

/* The server counts that it was asked, and says if there is no such answer, for want of a policy or
 * as the options are not well-formed. */
static int reply_instead(const record *r, RedisModuleString **argv, int argc, answer a) {
    argv[2] = asked_instead(r, argv[1]);
    RedisModuleCallReply *reply =
        native_call(r->ctx, NATIVE_KEEPS_SILENT, native_name(r->ctx), argv + 1, (size_t)argc - 1);
    RedisModule_FreeString(NULL, argv[2]);
    argv[2] = r->name;
    if (!reply || RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_ERROR)
        return native_reply(r->ctx, reply);
    RedisModule_FreeCallReply(reply);
    return a.word ? RedisModule_ReplyWithCString(r->ctx, a.word)
                  : RedisModule_ReplyWithLongLong(r->ctx, a.number);
}

int serve_object(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    record r;
    if (argc < 3) return native_run(ctx, argv, argc);
    if (lookup_quietly(ctx, argv[2], clock_now_ms(), &r) == LOOKUP_DONE && r.found) {
        if (is_long(&r)) return reply_instead(&r, argv, argc, answer_of_long(&r, argv[1]));
        if (argc == 3 && arg_is(argv[1], "encoding") && is_stored_as_number(&r))
            return reply_instead(&r, argv, argc, (answer){"int", 0});
    }
    return lend(ctx, argv, argc, argv[2]);
}
