/*
 * ckv.h: the state that the Redis side of ckv shares, and its log.
 *
 * The rooms, each built on those before it: core (how records lie in memory; knows no server),
 * server (what we ask of the server), keyspace (from a key to its record), background (what happens
 * between commands), persist (files), commands, transparent (the server's commands that are
 * served). docs/design.md walks through them.
 *
 * Threads: everything here is the main thread's. Others are one that trains (background/train.c),
 * those that encode (background/encoders.c), one that frees (background/freer.c), and those of the
 * server that free values (keyspace/maps.c, maps_free()). A child that saves has none of them.
 */
#ifndef CKV_H
#define CKV_H

#include "core/map/map.h"
#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CKV_NAME           "ckv"
#define CKV_MODULE_VERSION 1
#define CKV_MAP_PREFIX     "ckv:"
/* Of commands that stand for the server's own (transparent/served.h): those that ACL rules have to
 * allow as they allow the server's own, and those that ask themselves whether it is allowed. */
#define CKV_SERVED_PREFIX "ckv."
#define CKV_ASKING_PREFIX "ckv+"

/* The server's own command that one of such a name stands for; NULL: it has none of these
 * prefixes. */
static inline const char *ckv_stands_for(const char *name, size_t len) {
    size_t prefix = sizeof CKV_SERVED_PREFIX - 1;
    bool stands = len >= prefix && (!memcmp(name, CKV_SERVED_PREFIX, prefix) ||
                                    !memcmp(name, CKV_ASKING_PREFIX, prefix));
    return stands ? name + prefix : NULL;
}

typedef struct ckv_config {
    long long maps, dictionary_size, compression_level, train_after, maxmemory, move_cpu;
    long long young_memory, encode_threads;
} ckv_config;

typedef struct ckv_stats {
    uint64_t expired, evicted, hits, misses, trainings;
    uint64_t expired_lazily;                        /* of those: when somebody met them */
    uint64_t evicted_keys;                          /* that are not ckv's */
    uint64_t moved_in, moved_out;                   /* strings, from and to the server's own keys */
    uint64_t file_maps, file_records, file_expired; /* in the file that was loaded last */
    uint64_t expire_us;                             /* spent in active expiry */
    uint64_t defrag_moved;                          /* blocks */
    uint64_t migrations_refused;                    /* keyspace/migration_hello.h */
    uint64_t longest_slice_us;                      /* of the work between commands, CPU time */
    double expired_share; /* of the records that active expiry came by lately */
} ckv_stats;

/* The one state of the module. */
typedef struct ckv_state {
    ckv_config config;
    ckv_stats stats;
    map_shared shared; /* by all maps */
    mem mem;
    uint64_t secret[2]; /* of the maps that are made here */
    uint32_t places;    /* of maps in a database */
    /* How often others may have changed what a command has looked up or encoded: other modules,
     * which call commands when they are told of an event. Those count who let that happen. */
    uint64_t disturbed;
    uint64_t loadings; /* of files that take the place of the data, since the start */
    RedisModuleType *type;
    RedisModuleCtx *ctx; /* for calls that no client made */
} ckv_state;

extern ckv_state ckv;

/* RedisModule_Log with the module's name, and with no context at hand. */
void ckv_log(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
