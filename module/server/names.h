/*
 * names.h: dictionaries by name, or by another key of some bytes. One with nothing in it is NULL.
 */
#ifndef CKV_NAMES_H
#define CKV_NAMES_H

#include "redismodule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a name counts as where names are limited, in number or in time: a long one as several. */
static inline size_t names_cost(size_t len) {
    return 1 + len / 128;
}

/* Whether a name is in it; what stands behind one, NULL if it is not. */
bool names_have(RedisModuleDict *names, const void *name, size_t len);
void *names_get(RedisModuleDict *names, const void *name, size_t len);

/* A name is in it from now on, and this stands behind it. */
void names_put(RedisModuleDict **names, const void *name, size_t len, void *value);
/* Takes a name out; returns what stood behind it, NULL if it was not there. */
void *names_drop(RedisModuleDict **names, const void *name, size_t len);

/* Those of a list of numbers that are in it, or (NULL) all. */
RedisModuleDict *names_among(RedisModuleDict *names, const uint64_t *numbers, size_t count);

/* Frees it, which takes long if it is large: then see keyspace/spent.h. Leaves NULL. */
void names_free(RedisModuleDict **names);
/* The same, and what stands behind its names, which is of the server's memory. */
void names_free_values(RedisModuleDict **names);

#endif
