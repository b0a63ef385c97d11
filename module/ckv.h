/*
 * ckv.h: what the Redis side of ckv shares.
 *
 * Files: load.c (start), command_table.c (the commands), cmd_*.c (their families), keyspace.c
 * (from a user's key to its record), places.c (which map that is), maps.c (all maps there are),
 * strays.c (maps that were renamed), type.c (the data type: memory, COPY, free), rdb.c (saving and
 * loading), relocate.c (files of other layouts), migration.c (slots on the move), train.c (learning
 * a codec), cron.c (what happens between commands), feed.c (does anybody listen?), config.c,
 * info.c.
 *
 * Nothing here knows how records lie inside a map: that is core's.
 */
#ifndef CKV_H
#define CKV_H

#include "core/map/map.h"
#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

#define CKV_NAME         "ckv"
#define CKV_VERSION      1
#define CKV_TYPE_NAME    "ckv-map-1" /* nine characters, for ever */
#define CKV_TYPE_VERSION 1
#define CKV_MAP_PREFIX   "ckv:"

typedef struct ckv_config {
    long long maps, dictionary_size, compression_level, train_after, maxmemory;
} ckv_config;

typedef struct ckv_stats {
    uint64_t expired, evicted, hits, misses, trainings;
    uint64_t evicted_keys; /* that are not ckv's */
    uint64_t expire_us;    /* spent in active expiry */
    double expired_share;  /* of the records that active expiry came by lately */
} ckv_stats;

/* The one state of the module, used by the main thread only. */
typedef struct ckv_state {
    ckv_config config;
    ckv_stats stats;
    map_shared shared; /* by all maps */
    mem mem;
    uint64_t secret[2]; /* of the maps that are made here */
    uint32_t places;    /* of maps in a database */
    RedisModuleType *type;
    RedisModuleCtx *ctx; /* for calls that no client made */
} ckv_state;

extern ckv_state ckv;

/* The server's clock, ms since 1970; within a command it stands still where the server can say. */
int64_t ckv_now_ms(void);

/* A clock for measuring, us. */
uint64_t ckv_monotonic_us(void);

/* RedisModule_Log with the module's name, and with no context at hand. */
void ckv_log(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
