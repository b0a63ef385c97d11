/* move.c: a string moves between ckv and the server's own keys. See move.h. */
#include "keyspace/move.h"

#include "keyspace/aside.h"
#include "keyspace/due.h"
#include "keyspace/exact_times.h"
#include "keyspace/map_home.h"
#include "keyspace/maxmemory.h"
#include "keyspace/migration.h"
#include "keyspace/native_memory.h"
#include "keyspace/own_records.h"
#include "keyspace/places.h"
#include "keyspace/string_bytes.h"
#include "keyspace/tryagain.h"
#include "server/clock.h"
#include "server/own_call.h"
#include "server/quiet.h"
#include "server/role.h"

#include <string.h>

/* A record as the map sees it. */
typedef struct found {
    keyed_map *in;
    map_key key;
    map_pos pos;
} found;

/* Whether there may be a record of that name, whatever the database. */
static bool may_be(const char *key, size_t len) {
    return key_shapes_may_have(&ckv.shared.shapes, key, len);
}

static bool find(int db, uint32_t place, const char *key, size_t len, found *f) {
    f->in = maps_at(db, place);
    if (!f->in) return false;
    map_key_init(f->in->m, &f->key, key, len);
    return map_find(f->in->m, &f->key, &f->pos);
}

static bool find_name(RedisModuleCtx *ctx, RedisModuleString *name, found *f) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    return may_be(key, len) &&
           find(RedisModule_GetSelectedDb(ctx), places_of_key(key, len), key, len, f);
}

static bool is_of_kind(const found *f, move_kind kind) {
    int64_t at_ms = map_expiry_ms(&f->pos);
    if (kind == MOVE_EXPIRED) return at_ms < clock_now_ms();
    return kind == MOVE_ALL || at_ms != EXPIRY_NEVER;
}

static int db_of_record(const char *key, size_t len, move_kind kind, int from) {
    if (!may_be(key, len)) return -1;
    uint32_t place = places_of_key(key, len);
    found f;
    for (int db = from; db < maps_dbs(); db++)
        if (find(db, place, key, len, &f) && is_of_kind(&f, kind)) return db;
    return -1;
}

bool move_any_record(const char *key, size_t len, move_kind kind) {
    return db_of_record(key, len, kind, 0) >= 0;
}

int move_db_of_record(const RedisModuleString *name, move_kind kind, int from) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    return db_of_record(key, len, kind, from);
}

bool move_has_record(RedisModuleCtx *ctx, RedisModuleString *name) {
    found f;
    return find_name(ctx, name, &f);
}

static void drop(RedisModuleCtx *ctx, found *f) {
    map_delete(f->in->m, &f->key, &f->pos, expiry_ticks(clock_now_ms()));
    map_home_drop_if_empty(ctx, f->in);
}

void move_drop_record(RedisModuleCtx *ctx, RedisModuleString *name) {
    found f;
    ckv.disturbed++;
    if (find_name(ctx, name, &f)) drop(ctx, &f);
}

/* ---- out ------------------------------------------------------------------------------------- */

static RedisModuleKey *open_to_write(RedisModuleCtx *ctx, RedisModuleString *name) {
    return RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
}

static bool is_taken(RedisModuleCtx *ctx, RedisModuleString *name) {
    RedisModuleKey *key = open_to_write(ctx, name);
    bool taken = RedisModule_KeyType(key) != REDISMODULE_KEYTYPE_EMPTY;
    RedisModule_CloseKey(key);
    return taken || native_is_spent(ctx, name);
}

static bool making; /* a native string: the server has it in hand */

static void set_native(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString *value) {
    RedisModuleKey *key = open_to_write(ctx, name);
    int before = quiet_begin(ctx);
    bool within = making;
    making = true;
    RedisModule_StringSet(key, value);
    making = within;
    quiet_end(ctx, before);
    RedisModule_CloseKey(key);
}

/* Other modules hear of the new key, and may write it, or delete it, before it has its expiry. */
static void make_native(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString *value,
                        int64_t at_ms) {
    int db = RedisModule_GetSelectedDb(ctx);
    set_native(ctx, name, value);
    if (at_ms == EXPIRY_NEVER) return;
    RedisModule_SelectDb(ctx, db);
    bool held = !own_records_have(db, name) && role_write_primarys();
    RedisModuleKey *key = open_to_write(ctx, name);
    /* What has expired has no time of its own any more. */
    RedisModule_SetAbsExpire(key, at_ms > 0 ? at_ms : 1);
    RedisModule_CloseKey(key);
    role_write_own(held);
}

static move_result carry_out(RedisModuleCtx *ctx, RedisModuleString *name, found *f,
                             int64_t at_ms) {
    size_t len;
    const uint8_t *value = map_value(f->in->m, &f->pos, &len);
    if (!value) return MOVE_STAYS;
    RedisModuleString *copy = RedisModule_CreateString(NULL, (const char *)value, len);
    ckv.disturbed++;
    drop(ctx, f);
    make_native(ctx, name, copy, at_ms);
    RedisModule_FreeString(NULL, copy);
    ckv.stats.moved_out++;
    return MOVE_DONE;
}

/* A record that has a place to go. Who is told that a key there has expired may change it. */
static move_result find_to_move(RedisModuleCtx *ctx, RedisModuleString *name, found *f) {
    if (!find_name(ctx, name, f)) return MOVE_NOTHING;
    if (!role_repeats(ctx) && is_taken(ctx, name)) return MOVE_TAKEN;
    return find_name(ctx, name, f) ? MOVE_DONE : MOVE_NOTHING;
}

move_result move_out(RedisModuleCtx *ctx, RedisModuleString *name, size_t most) {
    found f;
    move_result result = find_to_move(ctx, name, &f);
    if (result != MOVE_DONE) return result;
    if (map_value_len(f.in->m, &f.pos) > most) return MOVE_STAYS;
    /* As it may be told: moved in again, it becomes the same. */
    return carry_out(ctx, name, &f, map_expiry_told_ms(&f.pos));
}

move_result move_lend(RedisModuleCtx *ctx, RedisModuleString *name, move_lent *lent) {
    found f;
    int64_t now_ms = clock_now_ms();
    move_result result = find_to_move(ctx, name, &f);
    if (result != MOVE_DONE) return result;
    *lent = (move_lent){.at_ms = map_expiry_ms(&f.pos),
                        .base = expiry_ticks(now_ms),
                        .code = map_expiry_code(&f.pos, expiry_ticks(now_ms)),
                        .uses = map_uses(&f.pos),
                        .given_ms = exact_times_of(f.in->m, &f.key, &f.pos)};
    return lent->at_ms >= now_ms ? carry_out(ctx, name, &f, lent->at_ms) : MOVE_STAYS;
}

/* ---- in -------------------------------------------------------------------------------------- */

/* A native string on its way. */
typedef struct incoming {
    RedisModuleKey *handle;
    int db;
    uint32_t place;
    const uint8_t *key, *value;
    size_t key_len, len;
    size_t native_bytes;            /* that it takes in the server's own form */
    size_t expected;                /* that the value will take, encoded, about */
    int64_t at_ms, now_ms, seen_ms; /* see role_seen_from() */
    int64_t given_ms; /* the time that it was given; EXPIRY_NEVER: not known, or none */
    uint64_t base;    /* seen_ms in ticks */
    uint16_t code;    /* of at_ms, since then */
    uint8_t uses;
} incoming;

/* The server's side of a map: its key, name and entry, and what wraps it. Bytes, measured. */
#define HOME_BYTES 171

/* What comes back as it went is as it was: its time would else be kept more exactly, and more of it
 * told than was asked for. */
static void look_at_lent(incoming *in, const move_lent *lent) {
    bool same = lent && lent->at_ms == in->at_ms;
    in->code = same ? expiry_rebase(lent->code, lent->base, in->base)
                    : expiry_code(in->at_ms, in->seen_ms);
    in->given_ms = same ? lent->given_ms : in->at_ms;
    in->uses = lent ? lent->uses : maxmemory_uses_of_write();
}

/* What has expired is the server's to find and to tell; where the command is repeated it had not
 * when it was moved. */
static bool is_kept(RedisModuleCtx *ctx, const incoming *in) {
    bool there = in->at_ms > in->now_ms || role_repeats(ctx);
    return there && in->at_ms - in->now_ms < EXPIRY_TTL_MAX_MS;
}

/* The value is read last: the server stores it otherwise from then on. */
static move_result open_native(RedisModuleCtx *ctx, RedisModuleString *name, incoming *in) {
    in->handle = open_to_write(ctx, name);
    in->db = RedisModule_GetSelectedDb(ctx);
    in->key = (const uint8_t *)RedisModule_StringPtrLen(name, &in->key_len);
    in->place = places_of_key(in->key, in->key_len);
    if (RedisModule_KeyType(in->handle) != REDISMODULE_KEYTYPE_STRING) return MOVE_NOTHING;
    mstime_t at_ms = RedisModule_GetAbsExpire(in->handle);
    bool expires = at_ms != REDISMODULE_NO_EXPIRE; /* if only at what is EXPIRY_NEVER to us */
    in->now_ms = clock_now_ms();
    in->at_ms = expires ? at_ms : EXPIRY_NEVER;
    in->seen_ms = role_seen_from(ctx, in->at_ms, in->now_ms);
    in->base = expiry_ticks(in->seen_ms);
    return !expires || is_kept(ctx, in) ? MOVE_DONE : MOVE_STAYS;
}

/* As any other write of a record, but that nobody is told. */
static move_result store(RedisModuleCtx *ctx, const incoming *in, keyed_map *to,
                         const codec_value *value) {
    map_key key;
    map_pos pos;
    ckv.disturbed++;
    map_key_init(to->m, &key, in->key, in->key_len);
    key.uses = in->uses;
    bool there = map_find(to->m, &key, &pos);
    if (there && map_expiry_ms(&pos) >= in->now_ms && !role_repeats(ctx)) return MOVE_TAKEN;
    maxmemory_note_written(value->len);
    bool done = map_put(to->m, &key, there ? &pos : NULL, value, in->code, in->base);
    if (done) exact_times_note(to->m, &key, in->given_ms);
    return done ? MOVE_DONE : MOVE_STAYS;
}

/* The map that it is to be in; NULL: there can be none. One that is on its way from or to another
 * node must not find another in its place. */
static keyed_map *map_for(RedisModuleCtx *ctx, const incoming *in) {
    if (migration_awaits_map(in->db, in->place)) return NULL;
    if (!maps_at(in->db, in->place) && tryagain_may_be_elsewhere(ctx, in->db, in->place))
        return NULL;
    return map_home_make(ctx, in->db, in->place);
}

static move_result take_in(RedisModuleCtx *ctx, RedisModuleString *name, const incoming *in,
                           const codec_value *value, int64_t *saved) {
    keyed_map *to = maps_at(in->db, in->place);
    if (!to) return MOVE_STAYS;
    bool first = to->m->totals.records == 0;
    uint64_t before = first ? 0 : map_record_bytes(&to->m->totals);
    move_result result = store(ctx, in, to, value);
    if (result != MOVE_DONE) return result;
    uint64_t after = first ? map_bytes(to->m) + HOME_BYTES : map_record_bytes(&to->m->totals);
    if (in->at_ms != EXPIRY_NEVER) due_note(in->db, name, in->at_ms, in->now_ms);
    if (value->young) after -= value->len - in->expected;
    *saved += (int64_t)in->native_bytes - (int64_t)(after - before);
    RedisModule_DeleteKey(in->handle);
    ckv.stats.moved_in++;
    return MOVE_DONE;
}

/* What a record and a native string take beside key and value, about. */
#define RECORD_BYTES 16
#define NATIVE_BYTES 64

/* By a tenth at least. Of short ones nobody knows what will be before anything has been learned. */
static bool is_smaller(const incoming *in, size_t encoded) {
    size_t native = in->key_len + in->len + NATIVE_BYTES;
    bool known =
        codecs_current_id(&ckv.shared.codecs) != CODEC_RAW || in->len >= CODEC_ZSTD_PLAIN_MIN;
    return !known || in->key_len + encoded + RECORD_BYTES <= native - native / 10;
}

/* Only the server's own commands read one. */
static bool is_hyperloglog(const incoming *in) {
    return in->len >= 16 && !memcmp(in->value, "HYLL", 4);
}

/* Nobody is to wait for the compression of a long value: it comes in young, where it may be. */
static move_result encode_long(incoming *in, codec_value *value) {
    map_shared *s = &ckv.shared;
    bool young = in->len + YOUNG_EXTRA <= s->young.limit && in->key_len <= LARGE_LONG_KEY;
    if (young && !map_make_young_room(s, in->len)) return MOVE_LATER;
    in->expected = codec_estimate_len(&s->work, in->value, in->len);
    if (!is_smaller(in, in->expected)) return MOVE_STAYS;
    bool done = young ? map_encode(s, in->value, in->len, value)
                      : codecs_encode_moved(&s->codecs, &s->work, in->value, in->len, value);
    return done ? MOVE_DONE : MOVE_STAYS;
}

static move_result encode_if_smaller(incoming *in, codec_value *value) {
    map_shared *s = &ckv.shared;
    if (is_hyperloglog(in)) return MOVE_STAYS;
    if (in->len > CODEC_CHEAPEST_MAX) return encode_long(in, value);
    bool done = codecs_encode(&s->codecs, &s->work, in->value, in->len, value);
    in->expected = value->len;
    return done && is_smaller(in, value->len) ? MOVE_DONE : MOVE_STAYS;
}

/* Whether a string moves in, and as what. */
static move_result look_at(RedisModuleCtx *ctx, RedisModuleString *name, bool if_smaller,
                           incoming *in, codec_value *value) {
    move_result result = open_native(ctx, name, in);
    if (result != MOVE_DONE) return result;
    if (if_smaller && RedisModule_ValueLength(in->handle) > CODEC_ZSTD_MAX)
        return MOVE_STAYS; /* nothing is gained */
    /* Before its value is looked at, for which the server may put it elsewhere. */
    in->native_bytes = string_bytes(ctx, name, RedisModule_ValueLength(in->handle));
    in->value = (const uint8_t *)RedisModule_StringDMA(in->handle, &in->len, REDISMODULE_READ);
    if (if_smaller) return encode_if_smaller(in, value);
    bool done = map_encode(&ckv.shared, in->value, in->len, value);
    in->expected = in->len;
    return done ? MOVE_DONE : MOVE_STAYS;
}

/* The same where there is no map for it. To make one is an event, and who is told may write the
 * string, or delete it: it is looked at again. */
static move_result make_map_and_look(RedisModuleCtx *ctx, RedisModuleString *name, bool if_smaller,
                                     incoming *in, codec_value *value) {
    RedisModule_CloseKey(in->handle);
    map_for(ctx, in);
    RedisModule_SelectDb(ctx, in->db);
    return look_at(ctx, name, if_smaller, in, value);
}

static void drop_vain_map(RedisModuleCtx *ctx, const incoming *in) {
    keyed_map *s = maps_at(in->db, in->place);
    if (s) map_home_drop_if_empty(ctx, s);
}

static move_result move(RedisModuleCtx *ctx, RedisModuleString *name, bool if_smaller,
                        const move_lent *lent, int64_t *saved) {
    incoming in;
    codec_value value;
    move_result result = look_at(ctx, name, if_smaller, &in, &value);
    if (result == MOVE_DONE && !maps_at(in.db, in.place))
        result = make_map_and_look(ctx, name, if_smaller, &in, &value);
    if (result == MOVE_DONE) look_at_lent(&in, lent);
    if (result == MOVE_DONE) result = take_in(ctx, name, &in, &value, saved);
    /* What is left to the server is no reason to train. */
    if (result == MOVE_DONE && if_smaller && !value.young)
        codecs_note_written(&ckv.shared.codecs, &value);
    RedisModule_CloseKey(in.handle);
    if (result != MOVE_DONE) drop_vain_map(ctx, &in);
    return result;
}

move_result move_back(RedisModuleCtx *ctx, RedisModuleString *name, const move_lent *lent) {
    int64_t saved = 0;
    return move(ctx, name, false, lent, &saved);
}

/* What the server has in hand may not go: a string that is made, or written by a command of ours,
 * while another module is told of it and calls this one. */
move_result move_in(RedisModuleCtx *ctx, RedisModuleString *name) {
    int64_t saved = 0;
    if (!making && !own_call_open()) return move(ctx, name, false, NULL, &saved);
    aside_note(name);
    return MOVE_STAYS;
}

move_result move_in_if_smaller(RedisModuleCtx *ctx, RedisModuleString *name, int64_t *saved) {
    return move(ctx, name, true, NULL, saved);
}
