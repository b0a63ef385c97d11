/*
 * tryagain.h: whether a map may be on another node of the cluster, so that its records must neither
 * be missed nor made here.
 *
 * While a slot is moved by MIGRATE, its map is on one of two nodes and the server, which looks for
 * the record's key and finds none, sends all commands to the node that imports the slot. A node
 * serves the slot for good if it would serve the map's own key to anybody: without ASKING, without
 * asking another node. Nobody can say that but the server, and it may change with any command, so
 * it is asked each time; but only where there is no map, which there is in every slot that holds a
 * record. While the cluster is down it says nothing of any slot, so that all may be elsewhere.
 * docs/design.md, "In a cluster".
 */
#ifndef CKV_TRYAGAIN_H
#define CKV_TRYAGAIN_H

#include "ckv.h"

/* Of a place that has no map here; `ctx` is the command's. */
bool tryagain_may_be_elsewhere(RedisModuleCtx *ctx, int db, uint32_t place)
    __attribute__((warn_unused_result));

/* Whether the server would send who asks for this record to another node, as it has no such key of
 * its own: its slot is open, here or there. */
bool tryagain_is_open(RedisModuleCtx *ctx, int db, RedisModuleString *key);

/* Whether the cluster is down: then the server lets no client write. An answer is believed for so
 * long (us), as the server goes over all its slots for it. */
bool tryagain_is_down(uint64_t believed_us);

/* Whether a slot that is refused here is no longer open, neither on its way here nor away: what is
 * awaited will not come. The server writes down all nodes for it. */
bool tryagain_is_given_back(uint32_t place);

#endif
