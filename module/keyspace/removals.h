/* removals.h: records that ckv takes out by itself, because they have expired or to make room. */
#ifndef CKV_REMOVALS_H
#define CKV_REMOVALS_H

#include "ckv.h"

#define REMOVALS_MAX 128 /* in one command to replicas and AOF */

typedef struct removals {
    RedisModuleString *keys[REMOVALS_MAX];
    size_t count;
} removals;

/* A map_gone for a `removals`, which has room for one more. */
void removals_note(void *all, const uint8_t *key, size_t key_len);

/* Tells replicas and AOF, WATCH and tracking, and notifies of `event`, of REDISMODULE_NOTIFY_*
 * `type`, on each key. ctx has their database selected. */
void removals_announce(RedisModuleCtx *ctx, removals *all, int type, const char *event);

/* What follows is told to replicas and AOF at once, and to all others by removals_end_hold().
 *
 * Redis 7.2 keeps what tracking pushes to the client that is being served until its command is
 * done. While the filter has a command of ours called, ahead of the client's own, that is ours, and
 * the message would be lost with its reply (Redis 8 ends by an assertion). */
void removals_begin_hold(void);
void removals_end_hold(RedisModuleCtx *ctx);

/* Tells WATCH and tracking of one key that was taken out, and notifies; keeps no reference. */
void removals_tell(RedisModuleCtx *ctx, RedisModuleString *key, int type, const char *event);

#endif
