/* config.c: the settings. Each is documented in docs/configuration.md. */
#include "config.h"

#include "background/settle.h"
#include "ckv.h"
#include "core/map/defaults.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "server/renamed.h"
#include "server/within.h"

#include <limits.h>
#include <string.h>

static bool config_started; /* the settings of the start are read */

static int refuse(RedisModuleString **error, const char *why) {
    *error = RedisModule_CreateString(NULL, why, strlen(why));
    return REDISMODULE_ERR;
}

static long long get_number(const char *name, void *at) {
    (void)name;
    return *(long long *)at;
}

static int set_number(const char *name, long long value, void *at, RedisModuleString **error) {
    (void)name, (void)error;
    *(long long *)at = value;
    return REDISMODULE_OK;
}

static int set_level(const char *name, long long value, void *at, RedisModuleString **error) {
    (void)name, (void)error;
    *(long long *)at = value;
    codecs_set_zstd_level(&ckv.shared.codecs, (int)value);
    return REDISMODULE_OK;
}

static int set_young(const char *name, long long value, void *at, RedisModuleString **error) {
    (void)name, (void)error;
    *(long long *)at = value;
    settle_configure();
    return REDISMODULE_OK;
}

/* ---- ckv.maps -------------------------------------------------------------------------------- */

/* The number of maps stays what it is at the start. CONFIG SET of the same number is no error, as
 * clients write back what they have read, so the server does not take it for immutable. */
static int set_maps(const char *name, long long value, void *at, RedisModuleString **error) {
    (void)name;
    if (config_started && value != *(long long *)at)
        return refuse(error, "can't be changed while the server runs");
    *(long long *)at = value;
    return REDISMODULE_OK;
}

/* ---- ckv.prefixes ---------------------------------------------------------------------------- */

/* Replicas in a cluster are told between commands what serves from then on, and what stands behind
 * it in a transaction would come before. */
static bool is_in_transaction(void) {
    return config_started && places_are_slots() && within_exec();
}

/* Lives as long as the module: the server keeps no reference. */
static RedisModuleString *prefixes_string;

static RedisModuleString *get_prefixes(const char *name, void *unused) {
    (void)name, (void)unused;
    return prefixes_string;
}

static int set_prefixes(const char *name, RedisModuleString *value, void *unused,
                        RedisModuleString **error) {
    (void)name, (void)unused;
    size_t len;
    const char *text = RedisModule_StringPtrLen(value, &len), *why;
    const char *renamed = len > 0 ? renamed_needed() : NULL;
    if (renamed) {
        *error = RedisModule_CreateStringPrintf(
            NULL, "rename-command must leave '%s' its name, which the module calls", renamed);
        return REDISMODULE_ERR;
    }
    if (is_in_transaction()) return refuse(error, "in a cluster can't be changed in MULTI");
    if (!prefixes_set(text, len, &why)) return refuse(error, why);
    if (prefixes_string) RedisModule_FreeString(NULL, prefixes_string);
    prefixes_string = RedisModule_CreateString(NULL, text, len);
    return REDISMODULE_OK;
}

/* ---- registration ---------------------------------------------------------------------------- */

int config_register(RedisModuleCtx *ctx) {
    const struct {
        const char *name;
        long long *at, standard, min, max;
        unsigned flags;
        RedisModuleConfigSetNumericFunc set;
    } settings[] = {
        {"maps", &ckv.config.maps, DEFAULT_MAPS, 1, 65536, REDISMODULE_CONFIG_DEFAULT, set_maps},
        {"dictionary-size", &ckv.config.dictionary_size, DEFAULT_DICTIONARY_SIZE, 64 << 10,
         64 << 20, REDISMODULE_CONFIG_MEMORY, set_number},
        {"compression-level", &ckv.config.compression_level, DEFAULT_COMPRESSION_LEVEL, 1, 19,
         REDISMODULE_CONFIG_DEFAULT, set_level},
        {"train-after", &ckv.config.train_after, DEFAULT_TRAIN_AFTER, 64 << 10, 1 << 30,
         REDISMODULE_CONFIG_MEMORY, set_number},
        {"young-memory", &ckv.config.young_memory, 0, 0, LLONG_MAX, REDISMODULE_CONFIG_MEMORY,
         set_young},
        {"encode-threads", &ckv.config.encode_threads, DEFAULT_ENCODE_THREADS, 0,
         SETTLE_THREADS_MAX, REDISMODULE_CONFIG_DEFAULT, set_young},
        {"maxmemory", &ckv.config.maxmemory, 0, 0, LLONG_MAX, REDISMODULE_CONFIG_MEMORY,
         set_number},
        {"move-cpu", &ckv.config.move_cpu, DEFAULT_MOVE_CPU, 1, 100, REDISMODULE_CONFIG_DEFAULT,
         set_number},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (RedisModule_RegisterNumericConfig(ctx, settings[i].name, settings[i].standard,
                                              settings[i].flags, settings[i].min, settings[i].max,
                                              get_number, settings[i].set, NULL,
                                              settings[i].at) != REDISMODULE_OK)
            return REDISMODULE_ERR;
    if (RedisModule_RegisterStringConfig(ctx, "prefixes", "", 0, get_prefixes, set_prefixes, NULL,
                                         NULL) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    config_started = RedisModule_LoadConfigs(ctx) == REDISMODULE_OK;
    return config_started ? REDISMODULE_OK : REDISMODULE_ERR;
}

void config_give_back(void) {
    if (prefixes_string) RedisModule_FreeString(NULL, prefixes_string);
    prefixes_give_back();
}
