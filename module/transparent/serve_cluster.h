/*
 * serve_cluster.h: what tells of the keys of a cluster's slots: Valkey's CLUSTERSCAN, and CLUSTER
 * COUNTKEYSINSLOT. CLUSTER GETKEYSINSLOT stays the server's: what moves slots moves the map.
 *
 * CLUSTERSCAN goes from slot to slot, and from node to node. A cursor is
 *
 *      fingerprint-{tag}-number      the tag is one of the slot, and leads to its node
 *
 * where a server takes the number only if the fingerprint is its own, and else begins with the slot
 * anew. Ours has a length that no server's has; the number is that of scanning.h: in each slot the
 * server's own keys come first, then the records, then the server's own keys once more if records
 * have moved out meanwhile.
 */
#ifndef CKV_SERVE_CLUSTER_H
#define CKV_SERVE_CLUSTER_H

#include "commands/commands.h"

command serve_cluster_scan, serve_cluster;

#endif
