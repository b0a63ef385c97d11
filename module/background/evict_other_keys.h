/*
 * evict_other_keys.h: evicting keys that are not ckv's, when they and the records share
 * `maxmemory`.
 *
 * The server itself would do it, but it can't be told to spare the maps. As the server does, a few
 * keys are drawn at random, and the one that the policy wants to go first goes.
 */
#ifndef CKV_EVICT_OTHER_KEYS_H
#define CKV_EVICT_OTHER_KEYS_H

#include "ckv.h"
#include "core/map/map_evict.h"

/* Of both: `ask` the server what a key takes; otherwise it is what those take in the mean that were
 * asked about lately. Within a client's command newer servers take a key that is asked about for
 * one that the client has read, and tell it so (tracking), whatever it may see. */

/* Bytes of all keys that are not maps: their number, and what those take that are drawn now and
 * then. 0 if there are none that may go. */
double others_bytes(RedisModuleCtx *ctx, const map_eviction *how, bool ask);

/* Evicts one of them; returns the bytes that it took, 0 if none was found that may go. */
size_t others_evict(RedisModuleCtx *ctx, const map_eviction *how, bool ask);

#endif
