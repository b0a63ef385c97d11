/* replicate.c: what replicas and the AOF are told. See replicate.h. */
#include "keyspace/replicate.h"

#include "keyspace/aof_form.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "server/feed.h"
#include "server/own_call.h"
#include "server/reply.h"

#include <string.h>

/* Words that go with every write are made once. */
static RedisModuleString *word(RedisModuleString **kept, const char *text) {
    if (!*kept) *kept = RedisModule_CreateString(NULL, text, strlen(text));
    return *kept;
}

/* Making the arguments is a tenth of what a short CSET takes: not where they go nowhere. */
static bool goes_nowhere(RedisModuleCtx *ctx) {
    if (!prefixes_any()) aof_form_note_own();
    if (feed_needed()) return false;
    RedisModule_ReplicateVerbatim(ctx); /* it counts as a change all the same */
    return true;
}

/* Before the first command that is served under them, and with its key: a file that an AOF begins
 * with need not name those that there were. */
static void tell_prefixes(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (!aof_form_tells_prefixes()) return;
    char *all = prefixes_all();
    RedisModule_Replicate(ctx, "CPREFIXES", "Rcs", all, key);
    RedisModule_Free(all);
}

/* Tells in the server's words or in ours: its name for a command is ours without the C. Every
 * step-th argument is a key. */
static void tell(RedisModuleCtx *ctx, bool plain, const char *command,
                 RedisModuleString *const *args, size_t count, size_t step) {
    if (!plain) {
        aof_form_note_own();
        RedisModule_Replicate(ctx, command, "v", args, count);
    } else if (!aof_form_own(ctx)) {
        RedisModule_Replicate(ctx, command + 1, "v", args, count);
    } else if (feed_replicas()) {
        tell_prefixes(ctx, args[0]);
        RedisModule_Replicate(ctx, command + 1, "Av", args, count);
        RedisModule_Replicate(ctx, "CPLAIN", "Rlcv", (long long)step, command + 1, args, count);
    } else {
        tell_prefixes(ctx, args[0]);
        /* For nobody, and yet to replicas as well: WAITAOF waits for the offset of their stream. */
        RedisModule_Replicate(ctx, "CPLAIN", "lcv", (long long)step, command + 1, args, count);
    }
}

static long long uncounted;

static void count_changes(RedisModuleCtx *ctx) {
    for (; uncounted > 0; uncounted--) RedisModule_ReplicateVerbatim(ctx);
}

/* What is replicated counts also where it goes nowhere, as it does in a call without "!". To say
 * for each that it is for nobody takes as long as to write a record. */
void replicate_count(RedisModuleCtx *ctx, long long changes) {
    uncounted = changes;
    if (changes <= 0) return;
    if (!feed_needed()) {
        count_changes(ctx);
        return;
    }
    own_call_drop(own_call(ctx, REPLICATE_COUNTED, ""));
    uncounted = 0; /* or whoever types its name would go on */
}

int replicate_counted(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (uncounted <= 0) return reply_unknown_command(ctx);
    count_changes(ctx);
    return RedisModule_ReplyWithNull(ctx);
}

static bool is_plain(RedisModuleString *key) {
    return prefixes_any() && prefixes_match_name(key) != PREFIX_NONE;
}

/* The same with a time behind the other arguments. */
static void tell_with_time(RedisModuleCtx *ctx, const char *command, RedisModuleString **args,
                           size_t count, int64_t at_ms) {
    args[count] = RedisModule_CreateStringFromLongLong(ctx, at_ms);
    tell(ctx, is_plain(args[0]), command, args, count + 1, count + 1);
    RedisModule_FreeString(ctx, args[count]);
}

void replicate_set(RedisModuleCtx *ctx, RedisModuleString *key, RedisModuleString *value,
                   int64_t at_ms) {
    static RedisModuleString *pxat, *keep_ttl;
    if (goes_nowhere(ctx)) return;
    bool kept = at_ms == EXPIRY_KEPT;
    size_t count = kept ? 3 : 2;
    RedisModuleString *option = kept ? word(&keep_ttl, "KEEPTTL") : word(&pxat, "PXAT");
    RedisModuleString *args[4] = {key, value, option, NULL};
    if (kept || at_ms == EXPIRY_NEVER)
        tell(ctx, is_plain(key), "CSET", args, count, count);
    else
        tell_with_time(ctx, "CSET", args, 3, at_ms);
}

/* Keys of one kind go together, with what belongs to them: one command is no transaction. */
static void tell_by_kind(RedisModuleCtx *ctx, const char *command, RedisModuleString *const *args,
                         size_t count, size_t step) {
    if (!prefixes_any() || count == step) {
        tell(ctx, is_plain(args[0]), command, args, count, step);
        return;
    }
    RedisModuleString **same = RedisModule_Alloc(count * sizeof *same);
    for (int plain = 0; plain <= 1; plain++) {
        size_t n = 0;
        for (size_t i = 0; i < count; i += step) {
            if (is_plain(args[i]) != plain) continue;
            memcpy(same + n, args + i, step * sizeof *same);
            n += step;
        }
        if (n > 0) tell(ctx, plain, command, same, n, step);
    }
    RedisModule_Free(same);
}

void replicate_command(RedisModuleCtx *ctx, const char *command, RedisModuleString *const *args,
                       size_t count, size_t step) {
    if (!goes_nowhere(ctx)) tell_by_kind(ctx, command, args, count, step);
}

void replicate_delete(RedisModuleCtx *ctx, RedisModuleString *const *keys, size_t count) {
    if (!goes_nowhere(ctx)) tell_by_kind(ctx, "CDEL", keys, count, 1);
}

/* Those that match no prefix are the server's own, also to whoever loads an AOF. */
void replicate_native_delete(RedisModuleCtx *ctx, RedisModuleString *const *keys, size_t count) {
    if (goes_nowhere(ctx)) return;
    if (!aof_form_own(ctx)) {
        tell(ctx, true, "CDEL", keys, count, 1);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_plain(keys[i]))
            tell(ctx, true, "CDEL", &keys[i], 1, 1);
        else
            RedisModule_Replicate(ctx, "DEL", "s", keys[i]);
    }
}

void replicate_removal(RedisModuleCtx *ctx, RedisModuleString *const *keys, size_t count,
                       bool lazy) {
    if (feed_needed()) tell_by_kind(ctx, lazy ? "CUNLINK" : "CDEL", keys, count, 1);
}

void replicate_expiry(RedisModuleCtx *ctx, RedisModuleString *key, int64_t at_ms) {
    if (goes_nowhere(ctx)) return;
    RedisModuleString *args[2] = {key, NULL};
    tell_with_time(ctx, "CPEXPIREAT", args, 1, at_ms);
}

void replicate_persist(RedisModuleCtx *ctx, RedisModuleString *key) {
    replicate_command(ctx, "CPERSIST", &key, 1, 1);
}

void replicate_move_out(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (!is_plain(key))
        RedisModule_Replicate(ctx, "CMOVEOUT", "s", key);
    else if (aof_form_own(ctx))
        RedisModule_Replicate(ctx, "CMOVEOUT", "Rs", key);
}

void replicate_left(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (is_plain(key) && places_are_slots()) RedisModule_Replicate(ctx, "CMOVEOUT", "As", key);
}

void replicate_moved_out(RedisModuleCtx *ctx, RedisModuleString *key) {
    replicate_move_out(ctx, key);
    replicate_left(ctx, key);
}

void replicate_moved_in(RedisModuleCtx *ctx, RedisModuleString *key) {
    if (!is_plain(key)) {
        aof_form_note_own();
        RedisModule_Replicate(ctx, "CMOVEIN", "s", key);
    } else if (places_are_slots()) {
        if (aof_form_own(ctx)) tell_prefixes(ctx, key);
        RedisModule_Replicate(ctx, "CMOVEIN", "sc", key, "SERVED");
    }
}
