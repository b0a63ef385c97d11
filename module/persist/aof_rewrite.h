/*
 * aof_rewrite.h: what a rewrite of the AOF says of a map: its records, each as a command; of an
 * inert one, a RESTORE.
 *
 *      CSET key value              PXAT time      a record of its own
 *      SET key value               PXAT time      one under a prefix, as anybody understands it
 *      CPREFIXES, CSET key value   PXAT time      the same in a cluster, where a slot leaves by the
 *                                                 name of its map: it must be in there
 *
 * Valkey sends a slot to another node in the same words. That node serves SET as it is set there.
 */
#ifndef CKV_AOF_REWRITE_H
#define CKV_AOF_REWRITE_H

#include "redismodule.h"

/* A file is about to be written, in the process that writes it; it is written, or failed. */
void aof_rewrite_began(void);
void aof_rewrite_ended(void);

/* The callback of ckv's data type. */
void aof_rewrite_map(RedisModuleIO *io, RedisModuleString *key, void *value);

#endif
