/*
 * keyspace.h: from a user's key to its map and record. Which map that is: places.h.
 */
#ifndef CKV_KEYSPACE_H
#define CKV_KEYSPACE_H

#include "keyspace/maps.h"

/* One look-up. */
typedef struct lookup {
    RedisModuleCtx *ctx;
    RedisModuleString *name; /* the user's key */
    int db;
    uint32_t place;     /* of its map */
    stored_map *stored; /* NULL: there is no such map yet */
    map_key key;
    uint64_t secret; /* of the map that the key was made ready for */
    map_pos pos;
    int64_t now_ms;
    bool stored_there; /* pos is where a record lies, which may have expired */
    bool found;        /* and it has not */
    const char *error; /* why the record can't be looked up; NULL: it can */
} lookup;

/* Finds the record of a key, as of now_ms. False (and the error is replied) if the map's Redis key
 * holds something else, or if the map is on its way to or from another node of the cluster. */
bool keyspace_find(RedisModuleCtx *ctx, RedisModuleString *key, int64_t now_ms, lookup *l);
/* The same, without replying: for commands that count what is no record as missing. They ask
 * keyspace_settled() before. */
bool keyspace_find_quietly(RedisModuleCtx *ctx, RedisModuleString *key, int64_t now_ms, lookup *l);

/* The same in two steps, for whoever has something to do while memory arrives: first begin, then
 * find. Other keys may be begun, found and written between the two. */
void keyspace_begin(RedisModuleCtx *ctx, RedisModuleString *key, int64_t now_ms, lookup *l);
bool keyspace_find_begun(lookup *l);

/* The error that keyspace_find() would reply, NULL if there is none. Cheaper than finding. */
const char *keyspace_error(RedisModuleCtx *ctx, RedisModuleString *key);

/* Whether the map of a key is not on its way to or from another node. False: the error is replied.
 * All keys of a command are in one slot, so one of them stands for all. */
bool keyspace_settled(RedisModuleCtx *ctx, RedisModuleString *key);

/* The value of a record that was found; replies an error and returns NULL if it is damaged. */
const uint8_t *keyspace_value(lookup *l, size_t *len);

/* Replies the value, or null if there is none. False: it is damaged, and that is the reply. */
bool keyspace_reply_value(lookup *l);
/* Counts a read, for INFO and for eviction, and tells of a miss. */
void keyspace_note_read(lookup *l);

/* Writes the record; at_ms is EXPIRY_NEVER or the time it expires. Tells WATCH and tracking.
 * False (and the error is replied): out of memory. */
bool keyspace_put(lookup *l, const void *value, size_t len, int64_t at_ms);
/* The same with a value that is encoded already. */
bool keyspace_put_encoded(lookup *l, const codec_value *value, int64_t at_ms);
/* The same, with the expiry that it has (none if it is new). */
bool keyspace_put_encoded_keeping_expiry(lookup *l, const codec_value *value);
bool keyspace_put_keeping_expiry(lookup *l, const void *value, size_t len);
bool keyspace_set_expiry(lookup *l, int64_t at_ms);
/* The same as a command does it: announced and replicated; a time that has passed deletes the
 * record, except on a replica or from an AOF, where that comes as a command of its own. */
bool keyspace_expire(lookup *l, int64_t at_ms);
/* Removes the expiry, if there is one; announced and replicated. False: the error is replied. */
bool keyspace_persist(lookup *l);
/* Deletes a record that is stored, expired or not; a map without records goes as well. */
void keyspace_delete(lookup *l);

/* Whether what has expired is deleted here: not on a replica or by commands from elsewhere, where
 * another server decides, nor while
 * a file is loaded, nor while CLIENT PAUSE or a failover keeps the data as it is. */
bool keyspace_may_expire(RedisModuleCtx *ctx);

/* The map of a place, made if there is none; ctx has its database selected. NULL: out of memory,
 * or its name holds something else. */
stored_map *keyspace_make_map(RedisModuleCtx *ctx, int db, uint32_t place);

/* Lists the map of a place that has come to its key without our doing; *s is NULL if there is none.
 * ctx has its database selected. Returns the type of what the key holds. */
int keyspace_list(RedisModuleCtx *ctx, int db, uint32_t place, stored_map **s);

/* Deletes the Redis key of a map that holds no record any more; ctx has its database selected. */
void keyspace_drop_if_empty(RedisModuleCtx *ctx, const stored_map *s);

/* Notifies of an event on the record's key. `type` is one of REDISMODULE_NOTIFY_*. */
void keyspace_notify(const lookup *l, int type, const char *event);

/* The longest TTL there is, ms; see expiry.h. */
#define KEYSPACE_TTL_MAX_MS EXPIRY_TTL_MAX_MS

#endif
