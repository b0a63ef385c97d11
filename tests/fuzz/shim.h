/*
 * shim.h: as much of a server as module/ needs to run inside a fuzzer.
 *
 * shim_start() loads the module as a server would: it is handed every function that it asks for by
 * name, and NULL for those that are not here, as in an old server. There are keys, which hold
 * values of the module's type, strings, replies (counted, not kept), a clock that the caller sets,
 * and files: numbers of 8 bytes and strings after their length in 8 bytes.
 */
#ifndef CKV_SHIM_H
#define CKV_SHIM_H

#include "redismodule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file; reading beyond its end is an error, as it is for the server. */
struct RedisModuleIO {
    uint8_t *bytes;
    size_t used, cap, at;
    bool failed;
};

typedef struct shim_command {
    const char *name;
    RedisModuleCmdFunc function;
} shim_command;

extern RedisModuleTypeMethods shim_type;
extern shim_command shim_commands[128];
extern int shim_command_count;
extern int64_t shim_now_ms;
/* The largest block that has been asked for since it was last set to 0. */
extern size_t shim_largest_block;

/* Aborts if the module refuses. */
void shim_start(void);

/* Carries out a command and checks that it gave exactly one reply; true if that was an error. */
bool shim_call(RedisModuleCmdFunc function, const char *const *args, const size_t *lens, int count);

/* The value of a key, NULL if there is none. */
void *shim_value(const char *name);
/* Frees all values, as FLUSHALL does. */
void shim_flush(void);

#endif
