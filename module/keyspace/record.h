/*
 * record.h: one record that was looked up (lookup.h): reading and changing it.
 *
 * WATCH and tracking are told of a change here; replicas and the AOF are told by whoever asked for
 * it (replicate.h), except where it says so.
 */
#ifndef CKV_RECORD_H
#define CKV_RECORD_H

#include "keyspace/maps.h"
#include "keyspace/removals.h"

/* A user's key and, once it has been looked up, its record. */
typedef struct record {
    RedisModuleCtx *ctx;
    RedisModuleString *name; /* the user's key */
    int db;
    uint32_t place; /* of its map */
    keyed_map *in;  /* its map; NULL: there is none yet */
    map_key key;
    uint64_t secret; /* of the map that the key was made ready for */
    map_pos pos;
    int64_t now_ms;
    bool there;         /* pos is where a record lies, which may have expired */
    bool found;         /* and it has not */
    uint64_t disturbed; /* ckv.disturbed when it was looked up */
    uint64_t alone;     /* the same, when the server had no value of that name if there is none */
} record;

/* Makes the key ready for the map that it is in. */
void record_init_key(record *r);

/* Looks the record up once more if others may have changed it since. */
void record_refresh(record *r);

/* The value of a record that was found; replies an error and returns NULL if it is damaged. */
const uint8_t *record_value(record *r, size_t *len);
/* The same for who only reads it: what is read again and again is kept decoded (core/map/hot.h). */
const uint8_t *record_read_value(record *r, size_t *len);

/* How long the value is, 0 if there is none. False: it is damaged, and that is the reply. */
bool record_value_len(const record *r, size_t *len);

/* Replies the value, or null if there is none. False: it is damaged, and that is the reply. */
bool record_reply_value(record *r);

/* The value that there is before a change, to be replied after it: *old becomes a copy, NULL if
 * there is none. False: it is damaged, and that is the reply. */
bool record_copy_value(record *r, RedisModuleString **old);
/* Forgets it: the change was refused, and that is the reply. */
int record_forget_copy(record *r, RedisModuleString *old);
/* Replies it, or null. */
int record_reply_copy(record *r, RedisModuleString *old);

/* Counts a read, for INFO and for eviction, and tells of a miss. Of a client whose reads are no
 * uses (CLIENT NO-TOUCH) eviction does not hear. */
void record_note_read(record *r);
/* The same for TOUCH, which is a use whoever sends it. */
void record_note_touch(record *r);
/* The same of a command that looks at a key and does not use it: not for eviction. */
void record_note_look(const record *r);

/* Whether a record of a value may be written: it is not too long, and ckv.maxmemory has not been
 * reached. False: the error is replied. */
bool record_may_be_of(const record *r, const RedisModuleString *value);

/* Writes the record; at_ms is the time it expires, EXPIRY_NEVER, or EXPIRY_KEPT: the expiry that it
 * has, none if it is new. False: out of memory or over a limit, nothing changed, and the error is
 * replied. */
bool record_put(record *r, const void *value, size_t len, int64_t at_ms);
/* The same with a value that is encoded already. */
bool record_put_encoded(record *r, const codec_value *value, int64_t at_ms);

/* Sets the expiry as a command does it: announced and replicated; a time that has passed deletes
 * the record (in Valkey it has expired), except where this server follows another, and that comes
 * as a command of its own. False: the error is replied. */
bool record_expire(record *r, int64_t at_ms);
/* Whether a value is not written at all, as it would have expired: in Valkey. What was there has
 * expired. */
bool record_is_put_expired(record *r, int64_t at_ms);
/* Removes the expiry, if there is one; announced and replicated. False: the error is replied. */
bool record_persist(record *r);

/* Deletes a record that is stored, expired or not; a map without records goes as well. */
void record_delete(record *r);
/* The same as a command does it, announced and replicated. */
void record_delete_by_command(record *r);
/* Deletes one that has expired; announced, replicated and counted. */
void record_expired(record *r);
/* The same, but it is only noted here, for removals_announce() to tell of. */
void record_gather_expired(record *r, removals *gone);

/* Notifies of an event on the record's key. `type` is one of REDISMODULE_NOTIFY_*. */
void record_notify(const record *r, int type, const char *event);
/* The events of SET, after the record has been put; `expires`: it was given an expiry. */
void record_notify_set(const record *r, bool expires);
/* Those of MSETEX, which come in another order in Redis. */
void record_notify_set_of_many(const record *r, bool expires);
/* Whether the event that a listener is told of, of this key, is one of a record. */
bool record_announces(const RedisModuleString *key);

#endif
