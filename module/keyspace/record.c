/* record.c: changing one record. See record.h. */
#include "keyspace/record.h"

#include "core/map/map_settle.h"
#include "keyspace/due.h"
#include "keyspace/exact_times.h"
#include "keyspace/map_home.h"
#include "keyspace/maxmemory.h"
#include "keyspace/native.h"
#include "keyspace/own_records.h"
#include "keyspace/prefixes.h"
#include "keyspace/removals.h"
#include "keyspace/replicate.h"
#include "server/child.h"
#include "server/no_touch.h"
#include "server/quiet.h"
#include "server/reply.h"
#include "server/role.h"
#include "server/settings.h"
#include "server/version.h"

#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

void record_init_key(record *r) {
    map_key_init(r->in->m, &r->key, r->key.key, r->key.len);
    r->secret = r->in->m->secret[0];
}

void record_refresh(record *r) {
    if (r->disturbed == ckv.disturbed) return;
    r->disturbed = ckv.disturbed;
    r->in = maps_at(r->db, r->place);
    r->there = r->found = false;
    if (!r->in) return;
    record_init_key(r);
    r->there = map_find(r->in->m, &r->key, &r->pos);
    r->found = r->there && map_expiry_ms(&r->pos) >= r->now_ms;
}

const uint8_t *record_value(record *r, size_t *len) {
    const uint8_t *value = map_value(r->in->m, &r->pos, len);
    if (value)
        r->pos.len_known = (uint32_t)*len + 1;
    else
        RedisModule_ReplyWithError(r->ctx, ERROR_DAMAGED);
    return value;
}

bool record_value_len(const record *r, size_t *len) {
    *len = r->found ? map_value_len(r->in->m, &r->pos) : 0;
    if (*len == CODEC_NO_ROOM) RedisModule_ReplyWithError(r->ctx, ERROR_DAMAGED);
    return *len != CODEC_NO_ROOM;
}

const uint8_t *record_read_value(record *r, size_t *len) {
    const uint8_t *value = map_read(r->in->m, &r->key, &r->pos, len);
    if (!value) RedisModule_ReplyWithError(r->ctx, ERROR_DAMAGED);
    return value;
}

bool record_reply_value(record *r) {
    if (!r->found) {
        RedisModule_ReplyWithNull(r->ctx);
        return true;
    }
    size_t len;
    const uint8_t *value = record_read_value(r, &len);
    if (value) RedisModule_ReplyWithStringBuffer(r->ctx, (const char *)value, len);
    return value != NULL;
}

bool record_copy_value(record *r, RedisModuleString **old) {
    size_t len;
    *old = NULL;
    if (!r->found) return true;
    const uint8_t *value = record_value(r, &len);
    if (value) *old = RedisModule_CreateString(r->ctx, (const char *)value, len);
    return value != NULL;
}

int record_forget_copy(record *r, RedisModuleString *old) {
    if (old) RedisModule_FreeString(r->ctx, old);
    return REDISMODULE_OK;
}

int record_reply_copy(record *r, RedisModuleString *old) {
    if (!old) return RedisModule_ReplyWithNull(r->ctx);
    RedisModule_ReplyWithString(r->ctx, old);
    return record_forget_copy(r, old);
}

void record_note_look(const record *r) {
    if (r->found) {
        ckv.stats.hits++;
        return;
    }
    ckv.stats.misses++;
    record_notify(r, REDISMODULE_NOTIFY_KEY_MISS, "keymiss");
}

static void note_use(record *r) {
    if (maxmemory_counts_reads()) map_note_use(r->in->m, &r->pos);
    if (!child_at_work()) map_touch(r->in->m, &r->pos); /* or each would copy a page */
}

void record_note_read(record *r) {
    record_note_look(r);
    if (r->found && !no_touch(r->ctx)) note_use(r);
}

void record_note_touch(record *r) {
    record_note_look(r);
    if (r->found) note_use(r);
}

/* ---- changing -------------------------------------------------------------------------------- */

static bool reply_out_of_memory(const record *r) {
    RedisModule_ReplyWithError(r->ctx, ERROR_MEMORY);
    return false;
}

/* A key has one value, and the record is about to be it: a native one that another module has put
 * there goes, as if it had been written over. */
static void drop_native(record *r) {
    if (prefixes_match_name(r->name) == PREFIX_NONE || !native_any(r->ctx)) return;
    RedisModuleKey *key =
        RedisModule_OpenKey(r->ctx, r->name, REDISMODULE_READ | REDISMODULE_WRITE);
    bool there = RedisModule_KeyType(key) != REDISMODULE_KEYTYPE_EMPTY;
    if (there) RedisModule_UnlinkKey(key);
    RedisModule_CloseKey(key);
    if (there) replicate_delete(r->ctx, &r->name, 1);
}

static bool is_alone(const record *r) {
    return r->there || r->alone == ckv.disturbed;
}

/* To ask for a native value is to be told that it has expired. */
static void become_alone(record *r) {
    while (r->alone != ckv.disturbed) {
        r->alone = ckv.disturbed;
        record_refresh(r);
        if (!r->there) drop_native(r);
    }
}

/* What has expired goes before it is written over, as does what others have put in its place, and a
 * key without a map gets one. All are events: who is told may encode a value in the place of
 * `value`, which becomes a copy, or write the same key. Returns what is to be freed then; r->in
 * stays NULL if memory runs out. */
static void *make_way(record *r, codec_value *value) {
    void *copy = RedisModule_Alloc(value->len + 1);
    memcpy(copy, value->bytes, value->len);
    value->bytes = copy;
    if (r->there) record_expired(r);
    become_alone(r);
    if (r->in || !(r->in = map_home_make(r->ctx, r->db, r->place))) return copy;
    record_init_key(r);
    r->there = map_find(r->in->m, &r->key, &r->pos);
    become_alone(r);
    return copy;
}

static int64_t seen_from(const record *r, int64_t at_ms) {
    return role_seen_from(r->ctx, at_ms, r->now_ms);
}

/* Who has to do with the expiry that a record has been given. */
static void note_expiry(const record *r, uint16_t code, uint64_t base) {
    if (code == EXPIRY_NONE) return;
    due_note(r->db, r->name, expiry_ms(code, base), r->now_ms);
    own_records_note(r->ctx, r->db, r->name);
}

static bool may_write(const record *r, size_t key_len, size_t value_len) {
    const char *error = key_len + value_len > MAP_RECORD_MAX           ? ERROR_TOO_LONG
                        : maxmemory_refuses() && !role_repeats(r->ctx) ? ERROR_LIMIT
                                                                       : NULL;
    if (error) RedisModule_ReplyWithError(r->ctx, error);
    return !error;
}

bool record_may_be_of(const record *r, const RedisModuleString *value) {
    size_t key_len, len;
    RedisModule_StringPtrLen(r->name, &key_len);
    RedisModule_StringPtrLen(value, &len);
    return may_write(r, key_len, len);
}

/* `given_ms`: the time that it is given, which the code is of; EXPIRY_NEVER: none, or it has it. */
static bool put_code(record *r, const codec_value *value, uint16_t code, uint64_t base,
                     int64_t given_ms) {
    if (!may_write(r, r->key.len, value->raw_len)) return false;
    codec_value written = *value;
    bool expired = r->there && !r->found && role_may_expire(r->ctx);
    void *copy = expired || !r->in || !is_alone(r) ? make_way(r, &written) : NULL;
    r->key.uses = maxmemory_uses_of_write();
    maxmemory_note_written(written.len);
    const map_pos *pos = r->there ? &r->pos : NULL;
    bool done = r->in && map_put(r->in->m, &r->key, pos, &written, code, base);
    if (copy) RedisModule_Free(copy);
    if (!done) return reply_out_of_memory(r);
    quiet_signal_modified(r->ctx, r->name);
    note_expiry(r, code, base);
    exact_times_note(r->in->m, &r->key, given_ms);
    if (pos) return true;
    prefixes_note_own_record(r->name);
    record_notify(r, REDISMODULE_NOTIFY_NEW, "new");
    return true;
}

bool record_put_encoded(record *r, const codec_value *value, int64_t at_ms) {
    record_refresh(r);
    if (at_ms == EXPIRY_KEPT && !r->found) at_ms = EXPIRY_NEVER;
    bool kept = at_ms == EXPIRY_KEPT;
    int64_t seen_ms = seen_from(r, kept ? map_expiry_ms(&r->pos) : at_ms);
    uint64_t base = expiry_ticks(seen_ms);
    uint16_t code = kept ? map_expiry_code(&r->pos, base) : expiry_code(at_ms, seen_ms);
    return put_code(r, value, code, base, kept ? EXPIRY_NEVER : at_ms);
}

bool record_put(record *r, const void *value, size_t len, int64_t at_ms) {
    codec_value encoded;
    return map_encode(&ckv.shared, value, len, &encoded) ? record_put_encoded(r, &encoded, at_ms)
                                                         : reply_out_of_memory(r);
}

static bool set_expiry(record *r, int64_t at_ms) {
    int64_t seen_ms = seen_from(r, at_ms);
    uint16_t code = expiry_code(at_ms, seen_ms);
    uint64_t base = expiry_ticks(seen_ms);
    if (!map_set_expiry(r->in->m, &r->key, &r->pos, code, base)) return reply_out_of_memory(r);
    quiet_signal_modified(r->ctx, r->name);
    note_expiry(r, code, base);
    exact_times_note(r->in->m, &r->key, at_ms);
    return true;
}

/* Who gives it an expiry that is past has deleted it; from Valkey 8.1 on it has expired. */
static void end_by_command(record *r) {
    if (!version_is_valkey(VALKEY_8_1)) {
        record_delete_by_command(r);
        return;
    }
    record_delete(r);
    ckv.stats.expired++;
    ckv.stats.expired_lazily++;
    replicate_delete(r->ctx, &r->name, 1);
    record_notify(r, REDISMODULE_NOTIFY_EXPIRED, "expired");
}

bool record_expire(record *r, int64_t at_ms) {
    if (at_ms <= r->now_ms && role_may_expire(r->ctx)) {
        end_by_command(r);
        return true;
    }
    if (!set_expiry(r, at_ms)) return false;
    replicate_expiry(r->ctx, r->name, at_ms);
    record_notify(r, REDISMODULE_NOTIFY_GENERIC, "expire");
    return true;
}

bool record_is_put_expired(record *r, int64_t at_ms) {
    if (at_ms > r->now_ms || !version_is_valkey(VALKEY_8_0) || !role_may_expire(r->ctx))
        return false;
    record_refresh(r);
    if (r->found) end_by_command(r);
    return true;
}

bool record_persist(record *r) {
    if (map_expiry_ms(&r->pos) == EXPIRY_NEVER) return true;
    if (!set_expiry(r, EXPIRY_NEVER)) return false;
    replicate_persist(r->ctx, r->name);
    record_notify(r, REDISMODULE_NOTIFY_GENERIC, "persist");
    return true;
}

/* Out of its map, which goes when it is empty. */
static void take_out(record *r) {
    map_delete(r->in->m, &r->key, &r->pos, expiry_ticks(r->now_ms));
    r->there = r->found = false;
    map_home_drop_if_empty(r->ctx, r->in);
}

static void delete_for(RedisModuleCtx *by, record *r) {
    take_out(r);
    quiet_signal_modified(by, r->name);
    r->in = maps_at(r->db, r->place);
}

void record_delete(record *r) {
    delete_for(r->ctx, r);
}

void record_delete_by_command(record *r) {
    record_delete(r);
    replicate_delete(r->ctx, &r->name, 1);
    record_notify(r, REDISMODULE_NOTIFY_GENERIC, "del");
}

void record_expired(record *r) {
    /* No client's doing: one that tracks all but its own changes is told as well. */
    RedisModule_SelectDb(ckv.ctx, r->db);
    delete_for(ckv.ctx, r);
    ckv.stats.expired++;
    ckv.stats.expired_lazily++;
    replicate_removal(r->ctx, &r->name, 1, settings_lazy_expire());
    record_notify(r, REDISMODULE_NOTIFY_EXPIRED, "expired");
}

void record_gather_expired(record *r, removals *gone) {
    take_out(r);
    r->in = maps_at(r->db, r->place);
    ckv.stats.expired++;
    gone->db = r->db;
    removals_note(gone, r->key.key, r->key.len);
}

static const RedisModuleString *announced; /* the new key that is being told of */

/* Who hears of an event may call commands, and so come by here again. */
void record_notify(const record *r, int type, const char *event) {
    const RedisModuleString *before = announced;
    announced = type == REDISMODULE_NOTIFY_NEW ? r->name : NULL;
    ckv.disturbed++;
    RedisModule_NotifyKeyspaceEvent(r->ctx, type, event, r->name);
    announced = before;
}

/* Redis 8.2 tells of what SET has written over. */
#define NOTIFY_OVERWRITTEN (1 << 15)

static void notify_overwritten(const record *r) {
    if (r->found && version_is_redis(REDIS_8_2))
        record_notify(r, NOTIFY_OVERWRITTEN, "overwritten");
}

void record_notify_set(const record *r, bool expires) {
    notify_overwritten(r);
    record_notify(r, REDISMODULE_NOTIFY_STRING, "set");
    if (expires) record_notify(r, REDISMODULE_NOTIFY_GENERIC, "expire");
}

void record_notify_set_of_many(const record *r, bool expires) {
    if (!expires || !version_is_redis(REDIS_8_4)) {
        record_notify_set(r, expires);
        return;
    }
    notify_overwritten(r);
    record_notify(r, REDISMODULE_NOTIFY_GENERIC, "expire");
    record_notify(r, REDISMODULE_NOTIFY_STRING, "set");
}

bool record_announces(const RedisModuleString *key) {
    return announced == key;
}
