/* lookup.c: from a user's key to its map and record. See lookup.h. */
#include "keyspace/lookup.h"

#include "keyspace/aside.h"
#include "keyspace/due.h"
#include "keyspace/held.h"
#include "keyspace/map_home.h"
#include "keyspace/maps.h"
#include "keyspace/migration.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/queued.h"
#include "keyspace/record.h"
#include "keyspace/tryagain.h"
#include "keyspace/untold.h"
#include "server/clock.h"
#include "server/reply.h"
#include "server/role.h"

/* Expired records are deleted when somebody meets them, if this server may: not of a slot that is
 * on its way here, whose keys expire where they come from. NULL: they are told of at once. Where
 * another module calls, nobody might be told, and replicas would go on from what has expired: it
 * counts as missing and stays, until it is written over or somebody else meets it. */
static void expire_if_due(record *r, removals *gone) {
    int64_t at_ms = map_expiry_ms(&r->pos);
    r->found = at_ms >= r->now_ms || role_repeats(r->ctx) || maps_hidden(r->place);
    if (r->found)
        due_note(r->db, r->name, at_ms, r->now_ms);
    else if (role_may_expire(r->ctx) && gone)
        record_gather_expired(r, gone);
    else if (role_may_expire(r->ctx) && !role_is_called(r->ctx))
        record_expired(r);
}

/* Where all is left, as nothing is known of what is needed, nobody else has taken note. */
static bool is_queued(const record *r) {
    if (!queued_has(r->name)) return false;
    if (queued_has_all()) aside_note(r->name);
    return true;
}

/* Whether a key without a record is the server's own. To ask the server may be to have it deleted,
 * as it has expired. */
static bool is_native(const record *r) {
    untold_tell(r->name);
    switch (prefixes_any() ? prefixes_match_name(r->name) : PREFIX_NONE) {
    case PREFIX_NONE:
        return native_sent(r->ctx); /* it was queued while the prefix was still set */
    case PREFIX_LEAVING:
        return true;
    case PREFIX_SERVING:
        return is_queued(r) || native_exists(r->ctx, r->name) ||
               migration_awaits_map(r->db, r->place);
    }
    return false;
}

/* Of a client that was held and runs now the server would refuse a command of its own for a slot
 * that is still on its way: its ASKING is forgotten. */
static lookup_answer leave_to_server(const record *r) {
    return RedisModule_IsBlockedReplyRequest(r->ctx) ? LOOKUP_TRY_AGAIN : LOOKUP_NATIVE;
}

static bool may_be_elsewhere(const record *r) {
    return tryagain_may_be_elsewhere(r->ctx, r->db, r->place);
}

/* Where there is no map. What is left to the server without being there is in the map, perhaps,
 * that is on its way. */
static lookup_answer without_map(const record *r, map_home_holds holds) {
    if (is_native(r)) {
        bool there = migration_awaits_map(r->db, r->place) || native_exists(r->ctx, r->name);
        return there || !may_be_elsewhere(r) ? leave_to_server(r) : LOOKUP_TRY_AGAIN;
    }
    if (holds == HOME_OTHER) return LOOKUP_WRONG_TYPE;
    return may_be_elsewhere(r) ? LOOKUP_TRY_AGAIN : LOOKUP_DONE;
}

/* Asks the server for a map that is not in the table. */
static lookup_answer find_map(record *r) {
    r->in = maps_at(r->db, r->place);
    if (r->in) return LOOKUP_DONE;
    map_home_holds holds = map_home_look(r->ctx, r->db, r->place, &r->in);
    return holds == HOME_MAP ? LOOKUP_DONE : without_map(r, holds);
}

/* Whose record it is; where its key lies is in `r->key`. */
static void name_it(record *r, RedisModuleCtx *ctx, RedisModuleString *name) {
    r->ctx = ctx;
    r->name = name;
    r->db = RedisModule_GetSelectedDb(ctx);
    r->key.key = (const uint8_t *)RedisModule_StringPtrLen(name, &r->key.len);
    r->place = places_of_key(r->key.key, r->key.len);
}

lookup_answer lookup_possible(RedisModuleCtx *ctx, RedisModuleString *name, record *r) {
    name_it(r, ctx, name);
    return find_map(r);
}

bool lookup_reply_answer(const record *r, RedisModuleString **argv, int argc,
                         lookup_answer answer) {
    switch (answer) {
    case LOOKUP_DONE:
        return true;
    case LOOKUP_NATIVE:
        native_run(r->ctx, argv, argc);
        return false;
    case LOOKUP_WRONG_TYPE:
        RedisModule_ReplyWithError(r->ctx, ERROR_TYPE);
        return false;
    case LOOKUP_TRY_AGAIN:
        break;
    }
    held_reply(r->ctx, r->db, r->place);
    return false;
}

bool lookup_arrived(RedisModuleCtx *ctx, RedisModuleString *name) {
    record r;
    if (!places_are_slots()) return true;
    lookup_answer answer = RedisModule_IsBlockedReplyRequest(ctx)
                               ? lookup_quietly(ctx, name, clock_now_ms(), &r)
                               : lookup_possible(ctx, name, &r);
    if (answer != LOOKUP_TRY_AGAIN) return true;
    held_reply(ctx, r.db, r.place);
    return false;
}

void lookup_begin(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_ms, record *r) {
    name_it(r, ctx, name);
    r->now_ms = now_ms;
    r->there = r->found = false;
    r->in = maps_at(r->db, r->place);
    if (r->in) record_init_key(r);
}

lookup_answer lookup_finish(record *r) {
    bool begun = r->in != NULL;
    r->disturbed = r->alone = ckv.disturbed;
    lookup_answer answer = find_map(r);
    if (answer != LOOKUP_DONE || !r->in) return answer;
    /* Another key of the command may have deleted the map and made another, at the same address. */
    if (!begun || r->secret != r->in->m->secret[0]) record_init_key(r);
    r->there = map_find(r->in->m, &r->key, &r->pos);
    if (r->there) expire_if_due(r, NULL);
    /* To ask for a key of the server's is to be told that it has expired. */
    bool native, disturbed;
    do {
        record_refresh(r);
        native = !r->there && is_native(r);
        disturbed = r->disturbed != ckv.disturbed;
    } while (disturbed);
    r->alone = r->disturbed;
    return native ? leave_to_server(r) : LOOKUP_DONE;
}

bool lookup_is_servers_own(const RedisModuleString *key, bool sent_native) {
    return sent_native && prefixes_match_name(key) == PREFIX_NONE;
}

lookup_answer lookup_finish_of_many(record *r, bool sent_native) {
    if (lookup_is_servers_own(r->name, sent_native)) return LOOKUP_NATIVE;
    return lookup_finish(r);
}

lookup_answer lookup_quietly(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_ms,
                             record *r) {
    lookup_begin(ctx, name, now_ms, r);
    return lookup_finish(r);
}

void lookup_expire(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_ms, removals *gone) {
    record r;
    lookup_begin(ctx, name, now_ms, &r);
    r.there = r.in && map_find(r.in->m, &r.key, &r.pos);
    if (r.there) expire_if_due(&r, gone);
}

bool lookup_key(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int64_t now_ms,
                record *r) {
    lookup_answer answer = lookup_quietly(ctx, argv[1], now_ms, r);
    return lookup_reply_answer(r, argv, argc, answer);
}
