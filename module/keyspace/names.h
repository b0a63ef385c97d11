/*
 * names.h: dictionaries by name, or by another key of some bytes. One with nothing in it is NULL.
 */
#ifndef CKV_NAMES_H
#define CKV_NAMES_H

#include "ckv.h"

/* What a name counts as where names are limited, in number or in time: a long one as several. */
static inline size_t names_cost(size_t len) {
    return 1 + len / 128;
}

/* Whether a name is in it. */
bool names_have(RedisModuleDict *names, const void *name, size_t len);
/* Frees it, which takes long if it is large: then see spent.h. Leaves NULL. */
void names_free(RedisModuleDict **names);
/* The same, if there is no name left in it. */
void names_free_if_empty(RedisModuleDict **names);

#endif
