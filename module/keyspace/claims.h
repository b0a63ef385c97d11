/*
 * claims.h: names, and which clients need them. A name is held as long as any does, and some
 * moments longer: many that are needed no more go one after the other (spent.h).
 */
#ifndef CKV_CLAIMS_H
#define CKV_CLAIMS_H

#include "ckv.h"

/* Lives as long as the module; all zeroes: none. */
typedef struct claims {
    RedisModuleDict *held; /* names, and how many times each is; NULL: none */
    RedisModuleDict *by;   /* clients, by number, and a dictionary of what each needs; NULL: none */
    size_t count;          /* of the latter's names */
} claims;

void claims_add(claims *c, uint64_t client, const char *name, size_t len);
bool claims_has(const claims *c, uint64_t client, const char *name, size_t len);
bool claims_any(const claims *c, const char *name, size_t len);
/* The names of a client; NULL: none. */
RedisModuleDict *claims_of(const claims *c, uint64_t client);

/* A client needs none of its names any more; none of those does that are not `needing`. */
void claims_drop(claims *c, uint64_t client);
void claims_keep(claims *c, bool (*needing)(uint64_t client));

#endif
