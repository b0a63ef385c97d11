/* scanning.c: what the commands that list keys have in common. See scanning.h. */
#include "transparent/scanning.h"

#include "commands/commands.h"
#include "keyspace/maps.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "server/acl.h"
#include "server/own_call.h"
#include "server/role.h"

/* In a cursor, see scanning.h. */
#define PHASE_END  4
#define MOVED      4
#define TIMES      8
#define TIMES_END  4
#define AT         (TIMES_END * TIMES)
#define CURSOR_END (1ULL << 53)

/* ---- whom is asked --------------------------------------------------------------------------- */

bool scanning_is_users(RedisModuleCtx *ctx, RedisModuleString *key) {
    uint32_t place = places_of_name(key);
    return place == PLACES_NONE || !maps_at(RedisModule_GetSelectedDb(ctx), place);
}

bool scanning_is_served(RedisModuleCtx *ctx, RedisModuleString *key) {
    (void)ctx;
    return prefixes_match_name(key) != PREFIX_NONE;
}

RedisModuleCallReply *scanning_ask(RedisModuleCtx *ctx, const char *command,
                                   RedisModuleString *first, RedisModuleString *const *more,
                                   size_t count) {
    bool trusted = acl_trust(true), left = cmd_scan_leave_expired(role_is_called(ctx));
    RedisModuleCallReply *reply = own_call(ctx, command, first ? "!Esv" : "!E", first, more, count);
    cmd_scan_leave_expired(left);
    acl_trust(trusted);
    return reply;
}

bool scanning_is_array(RedisModuleCallReply *reply) {
    return reply && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_ARRAY;
}

void scanned_take(RedisModuleCtx *ctx, scanned *s, RedisModuleCallReply *keys,
                  scanning_wanted *wanted) {
    size_t n = RedisModule_CallReplyLength(keys);
    size_t before = s->count;
    s->keys = RedisModule_Realloc(s->keys, (s->count + n + 1) * sizeof *s->keys);
    for (size_t i = 0; i < n; i++) {
        RedisModuleString *key =
            RedisModule_CreateStringFromCallReply(RedisModule_CallReplyArrayElement(keys, i));
        if (key && wanted(ctx, key))
            s->keys[s->count++] = key;
        else if (key)
            RedisModule_FreeString(ctx, key);
    }
    s->left_out = n - (s->count - before);
}

void scanned_free(RedisModuleCtx *ctx, scanned *s) {
    for (size_t i = 0; i < s->count; i++) RedisModule_FreeString(ctx, s->keys[i]);
    RedisModule_Free(s->keys);
}

/* ---- where a scan stands --------------------------------------------------------------------- */

static uint64_t times_moved; /* that a scan found records moved out since the one before it */

void scanning_look_for_moves(void) {
    static uint64_t moved_out;
    times_moved += moved_out != ckv.stats.moved_out;
    moved_out = ckv.stats.moved_out;
}

bool scanning_read_position(uint64_t number, scan_position *p) {
    p->at = number / AT;
    p->phase = number % PHASE_END;
    p->moved =
        number / MOVED % 2 || (number > 0 && number / TIMES % TIMES_END != times_moved % TIMES_END);
    return number < CURSOR_END && p->phase <= SCAN_NATIVE_AGAIN;
}

uint64_t scanning_write_position(const scan_position *p) {
    return p->at * AT + times_moved % TIMES_END * TIMES + p->moved * MOVED + p->phase;
}

bool scanning_next_phase(scan_position *p) {
    p->at = 0;
    if (p->phase == SCAN_NATIVE_AGAIN || (p->phase == SCAN_RECORDS && !p->moved)) return false;
    p->phase++;
    return true;
}
