/*
 * serve_info.h: INFO, in which records are the strings that they stand for. Whoever watches the
 * server (a dashboard, an exporter, an operator) looks at figures that count what the server holds
 * and runs itself, and so would see maps for keys, no hits, and commands of other names:
 *
 *      keyspace_hits, keyspace_misses    those of records are added
 *      expired_keys, evicted_keys
 *      maxmemory, maxmemory_human        what was asked for, wherever the setting stands
 *      db0:keys=..,expires=..            maps are taken off, records are added
 *      cmdstat_get, latency_..._get      ckv.get and ckv+get are shown as what was sent
 *      db0_distrib_strings_sizes         records are added (string_sizes.h)
 */
#ifndef CKV_SERVE_INFO_H
#define CKV_SERVE_INFO_H

#include "commands/commands.h"

command serve_info;

/* CONFIG RESETSTAT: what has been counted up to now is not shown any more. */
command serve_config;

#endif
