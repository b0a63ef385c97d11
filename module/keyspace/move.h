/*
 * move.h: a string moves between ckv and the server's own keys, as if nothing had happened: no
 * event, no WATCH, no tracking. To everybody else both forms are one string.
 */
#ifndef CKV_MOVE_H
#define CKV_MOVE_H

#include "ckv.h"

#define MOVE_ANY SIZE_MAX /* bytes */

typedef enum move_result {
    MOVE_DONE,
    MOVE_NOTHING, /* there is no string, or no record, of that name */
    MOVE_LEFT,    /* it stays as it is: no memory, damaged, or not what was asked for */
} move_result;

/* Moves a record of ctx's database out into a native string with its value and expiry, if it has at
 * most so many bytes. A record that has expired moves as well: that it is gone is the server's to
 * find and to tell. */
move_result move_out(RedisModuleCtx *ctx, RedisModuleString *key, size_t most);

/* Moves a native string of ctx's database in; not if its expiry is further away than a record
 * keeps. */
move_result move_in(RedisModuleCtx *ctx, RedisModuleString *key);
/* The same of one that has just moved out: the server can't have it in hand. */
move_result move_back(RedisModuleCtx *ctx, RedisModuleString *key);
/* The same, unless it would not get much smaller; adds to *saved what it does, in bytes. */
move_result move_in_if_smaller(RedisModuleCtx *ctx, RedisModuleString *key, int64_t *saved);

/* Whether some database has a record of that name, of that kind. */
typedef enum move_kind { MOVE_ALL, MOVE_EXPIRING, MOVE_EXPIRED } move_kind;
bool move_any_record(const char *key, size_t len, move_kind kind);

/* Drops the record of a name, whose native value is newer. ctx has its database selected. */
void move_drop_record(RedisModuleCtx *ctx, RedisModuleString *key);

#endif
