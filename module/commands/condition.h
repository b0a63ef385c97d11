/* condition.h: writing only if the value is what is expected: IFEQ value, IFNE value. */
#ifndef CKV_CONDITION_H
#define CKV_CONDITION_H

#include "keyspace/record.h"

typedef struct condition {
    RedisModuleString *value; /* NULL: no condition */
    bool equal;               /* IFEQ; else IFNE */
} condition;

/* Whether the argument is one of the two words. It sets what is compared, not yet with what. */
bool condition_word(RedisModuleString *word, condition *c);

/* Whether the record is as expected; no record is not equal to anything. False: the value is
 * damaged, and that is the reply. */
bool condition_check(const condition *c, record *r, bool *holds);

/* The same of what the server itself holds under a key: most servers don't know the two words, or
 * not both. False: it is no string, and that is the reply. */
bool condition_check_native(const condition *c, RedisModuleCtx *ctx, RedisModuleString *key,
                            bool *holds);

#endif
