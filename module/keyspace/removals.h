/*
 * removals.h: records that ckv takes out by itself, because they have expired or to make room.
 *
 * They are gathered, and told of once: what a module replicates between two commands is one unit to
 * the server, which puts MULTI and EXEC around it as soon as it is more than one command. Its own
 * expiry and eviction need no transaction, and no more do ours. In a cluster each slot has a
 * command of its own all the same: a server that hands slots over atomically gives that up when a
 * module tells of several slots at once.
 */
#ifndef CKV_REMOVALS_H
#define CKV_REMOVALS_H

#include "ckv.h"

#define REMOVALS_MAX  1024 /* in one command to replicas and AOF */
#define REMOVALS_STEP 128  /* that are noted with nothing asked in between */

/* What one command can tell of. */
typedef struct removals_part {
    int db;
    uint32_t slot; /* 0 where there is no cluster */
} removals_part;

typedef struct removals {
    RedisModuleString *keys[REMOVALS_MAX];
    removals_part parts[REMOVALS_MAX];
    size_t count;
    int db; /* of those that are noted next */
} removals;

typedef enum removals_cause { REMOVALS_EXPIRED, REMOVALS_EVICTED } removals_cause;

/* A map_gone for a `removals`, which has room for one more. */
void removals_note(void *all, const uint8_t *key, size_t key_len);

/* Whether there is no room for a step more. */
bool removals_full(const removals *all);

/* Tells replicas and AOF, by one command for a database (in a cluster, a slot), WATCH and tracking,
 * and notifies of each key. Leaves any database selected. */
void removals_announce(RedisModuleCtx *ctx, removals *all, removals_cause cause);

/* What follows is told to replicas and AOF at once, and to all others by removals_tell_deferred().
 *
 * Redis 7.2 keeps what tracking pushes to the client that is being served until its command is
 * done. While the filter has a command of ours called, ahead of the client's own, that is ours, and
 * the message would be lost with its reply (Redis 8 ends by an assertion). */
void removals_defer(void);
void removals_tell_deferred(RedisModuleCtx *ctx);

/* Tells WATCH and tracking of one key that was taken out, and notifies; keeps no reference. */
void removals_tell(RedisModuleCtx *ctx, RedisModuleString *key, int type, const char *event);

#endif
