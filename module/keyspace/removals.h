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

#endif
