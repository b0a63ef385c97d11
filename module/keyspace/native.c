/* native.c: what the server itself holds. See native.h. */
#include "keyspace/native.h"

#include "keyspace/aside.h"
#include "keyspace/long_strings.h"
#include "keyspace/maps.h"
#include "keyspace/move.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/queued.h"
#include "keyspace/replicate.h"
#include "keyspace/untold.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "server/role.h"

#include <string.h>

/* For writing as well: a miss in reading would be announced. */
static RedisModuleKey *open_unnoticed(RedisModuleCtx *ctx, RedisModuleString *key) {
    return RedisModule_OpenKey(ctx, key,
                               REDISMODULE_READ | REDISMODULE_WRITE | REDISMODULE_OPEN_KEY_NOTOUCH);
}

int native_type(RedisModuleCtx *ctx, RedisModuleString *key) {
    RedisModuleKey *handle = open_unnoticed(ctx, key);
    int type = RedisModule_KeyType(handle);
    RedisModule_CloseKey(handle);
    return type;
}

bool native_is_long_string(RedisModuleCtx *ctx, RedisModuleString *key) {
    RedisModuleKey *handle = open_unnoticed(ctx, key);
    bool is = RedisModule_KeyType(handle) == REDISMODULE_KEYTYPE_STRING &&
              RedisModule_ValueLength(handle) > NATIVE_CHANGED_IN_PART;
    RedisModule_CloseKey(handle);
    return is;
}

/* The server does not let go of the name: a copy is asked for. */
bool native_has_expired(RedisModuleCtx *ctx, const RedisModuleString *key) {
    if (!RedisModule_GetOpenKeyModesAll) return false;
    RedisModuleString *name = RedisModule_CreateStringFromString(NULL, key);
    RedisModuleKey *handle =
        RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_OPEN_KEY_NOEFFECTS);
    bool expired = RedisModule_KeyType(handle) == REDISMODULE_KEYTYPE_EMPTY;
    RedisModule_CloseKey(handle);
    RedisModule_FreeString(NULL, name);
    return expired;
}

bool native_any(RedisModuleCtx *ctx) {
    return places_are_slots() || native_count(ctx) > 0;
}

bool native_exists(RedisModuleCtx *ctx, RedisModuleString *key) {
    return native_any(ctx) && native_type(ctx, key) != REDISMODULE_KEYTYPE_EMPTY;
}

uint64_t native_count(RedisModuleCtx *ctx) {
    uint64_t keys = RedisModule_DbSize(ctx);
    uint64_t maps = maps_shown_in_db(RedisModule_GetSelectedDb(ctx));
    return keys > maps ? keys - maps : 0;
}

/* Between commands there is none. */
bool native_sent(RedisModuleCtx *ctx) {
    const char *name = RedisModule_GetCurrentCommandName(ctx);
    return name && ckv_stands_for(name, strlen(name));
}

const char *native_name(RedisModuleCtx *ctx) {
    const char *name = RedisModule_GetCurrentCommandName(ctx);
    const char *own = ckv_stands_for(name, strlen(name));
    return own ? own : name + 1;
}

bool native_string_is(RedisModuleCtx *ctx, RedisModuleString *name, const RedisModuleString *value,
                      bool *is) {
    size_t len, wanted_len;
    const char *wanted = RedisModule_StringPtrLen(value, &wanted_len);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    int type = RedisModule_KeyType(key);
    *is = false;
    if (type == REDISMODULE_KEYTYPE_STRING) {
        const char *bytes = RedisModule_StringDMA(key, &len, REDISMODULE_READ);
        *is = len == wanted_len && !memcmp(bytes, wanted, len);
    }
    RedisModule_CloseKey(key);
    return type == REDISMODULE_KEYTYPE_STRING || type == REDISMODULE_KEYTYPE_EMPTY;
}

/* ---- calling --------------------------------------------------------------------------------- */

RedisModuleCallReply *native_call(RedisModuleCtx *ctx, native_replicates how, const char *command,
                                  RedisModuleString *const *args, size_t count) {
    bool held = role_repeats(ctx) && role_write_primarys();
    /* To nobody at all would hold for what other modules call within, too. */
    RedisModuleCallReply *reply =
        own_call(ctx, command, how == NATIVE_REPLICATES ? "!E0v" : "!ARE0v", args, count);
    role_write_own(held);
    return reply;
}

int native_reply(RedisModuleCtx *ctx, RedisModuleCallReply *reply) {
    if (!reply) return RedisModule_ReplyWithError(ctx, ERROR_NATIVE);
    RedisModule_ReplyWithCallReply(ctx, reply);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

typedef enum written { WRITTEN_NOTHING, WRITTEN_WHOLE, WRITTEN_PART } written;

/* What a command writes of a string. */
static written writes(const char *name) {
    static const char *const parts[] = {"append", "setrange"};
    static const char *const whole[] = {"set",  "setnx",  "setex",       "psetex", "getset",
                                        "incr", "incrby", "incrbyfloat", "decr",   "decrby"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(name, parts[i])) return WRITTEN_PART;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (!strcmp(name, whole[i])) return WRITTEN_WHOLE;
    return WRITTEN_NOTHING;
}

/* What was replied, if it is a number; else `other`. */
static long long number_of(RedisModuleCallReply *reply, long long other) {
    bool number = reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_INTEGER;
    return number ? RedisModule_CallReplyInteger(reply) : other;
}

/* In a cluster who repeats what was done is told of each string that has moved in: a slot's first
 * one makes its map, which must not stand where that of another node is still to come. Nobody can
 * be told while a slot arrives. */
void native_take_in(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (places_are_slots() && (role_repeats(ctx) || untold_arrives(key))) return;
    if (prefixes_match_name(key) != PREFIX_SERVING || queued_has(key)) return;
    if (move_in(ctx, key) == MOVE_DONE) replicate_moved_in(ctx, key);
}

static void note_if_long(RedisModuleString *key, RedisModuleCallReply *reply) {
    size_t len;
    const char *name = RedisModule_StringPtrLen(key, &len);
    bool is_string = reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_STRING;
    if (is_string && RedisModule_CallReplyLength(reply) >= LONG_STRING)
        long_strings_note(name, len);
}

/* Whether SET is given this option. All but these four are followed by a value. */
static bool set_has(RedisModuleString **argv, int argc, const char *option) {
    static const char *const alone[] = {"nx", "xx", "get", "keepttl"};
    for (int i = 3; i < argc; i++) {
        bool followed = true;
        if (arg_is(argv[i], option)) return true;
        for (size_t k = 0; k < sizeof alone / sizeof *alone; k++)
            if (arg_is(argv[i], alone[k])) followed = false;
        i += followed;
    }
    return false;
}

/* Whether a command replies what it is about to overwrite. */
static bool replies_old_value(const char *name, RedisModuleString **argv, int argc) {
    if (!strcmp(name, "getdel") || !strcmp(name, "getset")) return true;
    return !strcmp(name, "set") && set_has(argv, argc, "get");
}

/* Whether a command that writes has failed, or what it asks for did not hold. (Whether an old value
 * was what IFEQ asks for nobody can tell.) */
static bool wrote_nothing(const char *name, RedisModuleString **argv, int argc,
                          RedisModuleCallReply *reply) {
    int type = RedisModule_CallReplyType(reply);
    if (type == REDISMODULE_REPLY_UNKNOWN || type == REDISMODULE_REPLY_ERROR) return true;
    if (!strcmp(name, "setnx")) return number_of(reply, -1) == 0;
    size_t len;
    if (!strcmp(name, "setrange")) return !RedisModule_StringPtrLen(argv[3], &len) || len == 0;
    if (strcmp(name, "set") != 0) return false;
    bool null = type == REDISMODULE_REPLY_NULL;
    if (!set_has(argv, argc, "get")) return null;
    return !null && set_has(argv, argc, "nx");
}

/* What is told while a slot arrives is dropped: then it is noted. */
static void note_if_arriving(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (untold_arrives(key)) untold_note((uint64_t)RedisModule_GetSelectedDb(ctx), key);
}

void native_tell_left(RedisModuleCtx *ctx, RedisModuleString *key) {
    prefix_state state = prefixes_match_name(key);
    if (state == PREFIX_LEAVING) replicate_move_out(ctx, key);
    if (state != PREFIX_SERVING || !(queued_has(key) || untold_arrives(key))) return;
    if (!native_exists(ctx, key)) return;
    replicate_moved_out(ctx, key);
    note_if_arriving(ctx, key);
}

static bool is_other_type(RedisModuleCtx *ctx, RedisModuleString *key) {
    int type = native_any(ctx) ? native_type(ctx, key) : REDISMODULE_KEYTYPE_EMPTY;
    return type != REDISMODULE_KEYTYPE_EMPTY && type != REDISMODULE_KEYTYPE_STRING;
}

/* Until no further piece has come for a while. */
static void put_aside(const RedisModuleString *key) {
    size_t len;
    const char *name = RedisModule_StringPtrLen(key, &len);
    long_strings_note(name, len);
    if (prefixes_match(name, len) == PREFIX_SERVING) aside_note(key);
}

/* While a module listens to events, Valkey 9.1 keeps back the error that a command that replies the
 * old value replies to a call, and gives it to a later one. So it must not come to the error there.
 * Who is blocked by a key of another type is told behind the command what it has become, and must
 * find the string. */
int native_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    const char *name = native_name(ctx);
    written what = writes(name);
    bool replies_old = replies_old_value(name, argv, argc);
    bool other_type = (what != WRITTEN_NOTHING || replies_old) && is_other_type(ctx, argv[1]);
    if (other_type && replies_old) {
        ckv.stats.hits++;
        return RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    }
    RedisModuleCallReply *reply =
        native_call(ctx, NATIVE_REPLICATES, name, argv + 1, (size_t)argc - 1);
    /* What somebody watches has to stay where it is, unless it is written. */
    if (other_type || wrote_nothing(name, argv, argc, reply)) what = WRITTEN_NOTHING;
    /* Replicas make a record also of a long value that comes in one piece. */
    bool is_long = what == WRITTEN_PART && number_of(reply, -1) > NATIVE_CHANGED_IN_PART;
    if (what == WRITTEN_NOTHING) note_if_long(argv[1], reply);
    native_reply(ctx, reply);
    if (what == WRITTEN_NOTHING) return REDISMODULE_OK;
    if (prefixes_match_name(argv[1]) == PREFIX_SERVING && queued_has(argv[1])) {
        replicate_left(ctx, argv[1]);
        note_if_arriving(ctx, argv[1]);
    } else if (is_long) {
        put_aside(argv[1]);
    } else {
        native_take_in(ctx, argv[1]);
    }
    return REDISMODULE_OK;
}

int native_leave(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    move_result result = move_out(ctx, argv[1], MOVE_ANY);
    if (result == MOVE_STAYS) return RedisModule_ReplyWithError(ctx, ERROR_DAMAGED);
    if (result == MOVE_DONE) untold_moved_out(ctx, argv[1]);
    put_aside(argv[1]);
    return native_reply(
        ctx, native_call(ctx, NATIVE_REPLICATES, native_name(ctx), argv + 1, (size_t)argc - 1));
}

/* None of these commands fails, but in a cluster Valkey 9.1 may reply the error that a script has
 * left: then what there was and is tells. */
long long native_count_of(RedisModuleCtx *ctx, RedisModuleString *key) {
    const char *name = native_name(ctx);
    bool deletes = !strcmp(name, "del") || !strcmp(name, "unlink");
    bool there = native_exists(ctx, key);
    RedisModuleCallReply *reply = native_call(ctx, NATIVE_KEEPS_SILENT, name, &key, 1);
    long long n = number_of(reply, there && !(deletes && native_exists(ctx, key)));
    own_call_drop(reply);
    return n;
}
