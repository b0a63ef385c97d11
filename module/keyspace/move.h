/*
 * move.h: a string moves between ckv and the server's own keys, as if nothing had happened: no
 * event, no WATCH, no tracking. To everybody else both forms are one string.
 */
#ifndef CKV_MOVE_H
#define CKV_MOVE_H

#include "ckv.h"

/* Moves a record of ctx's database out into a native string with its value and expiry. False: there
 * is none, or it can't be read. A record that has expired moves as well: that it is gone is the
 * server's to find and to tell. */
bool move_out(RedisModuleCtx *ctx, RedisModuleString *key);

/* Moves a native string of ctx's database in. False: there is no string under that name, or no
 * memory, or its expiry is further away than a record keeps; it stays as it is. */
bool move_in(RedisModuleCtx *ctx, RedisModuleString *key);

/* Whether some database has a record of that name, expired or not; `expiring`: one with an expiry.
 */
bool move_any_record(const char *key, size_t len, bool expiring);

/* Drops the record of a name, whose native value is newer. ctx has its database selected. */
void move_drop_record(RedisModuleCtx *ctx, RedisModuleString *key);

#endif
