/*
 * move.h: a string moves between ckv and the server's own keys, as if nothing had happened: no
 * event, no WATCH, no tracking. To everybody else both forms are one string. But for an application
 * that has used CSET beside SET there may be two values of one name: neither takes the other's
 * place.
 */
#ifndef CKV_MOVE_H
#define CKV_MOVE_H

#include "ckv.h"

#define MOVE_ANY SIZE_MAX /* bytes */

typedef enum move_result {
    MOVE_DONE,
    MOVE_NOTHING, /* there is no string, or no record, of that name */
    MOVE_STAYS,   /* it stays as it is: no memory, damaged, or not what was asked for */
    MOVE_TAKEN,   /* it stays: where it would go there is another value of its name */
    MOVE_LATER,   /* it stays, as there is no room for it to be young now */
} move_result;

/* Moves a record of ctx's database out into a native string with its value and expiry, if it has at
 * most so many bytes. A record that has expired moves as well: that it is gone is the server's to
 * find and to tell. */
move_result move_out(RedisModuleCtx *ctx, RedisModuleString *key, size_t most);

/* What a native string does not show of the record that it was: how exactly its expiry is kept, and
 * how often it was used. */
typedef struct move_lent {
    int64_t at_ms;
    uint64_t base; /* of the code, ticks */
    uint16_t code;
    uint8_t uses;
    int64_t given_ms; /* exact_times_of() */
} move_lent;

/* The same for a command that comes back to move_back() with what is told here: not what has
 * expired, and until it really expires, which is somewhat later than may be told. */
move_result move_lend(RedisModuleCtx *ctx, RedisModuleString *key, move_lent *lent);

/* Moves a native string of ctx's database in; not if its expiry is further away than a record
 * keeps. */
move_result move_in(RedisModuleCtx *ctx, RedisModuleString *key);
/* The same of one that was lent: the server can't have it in hand. NULL: what it was then is not
 * known any more. */
move_result move_back(RedisModuleCtx *ctx, RedisModuleString *key, const move_lent *lent);
/* The same, unless it would not get much smaller; a long value comes in young, so that nobody waits
 * for its compression. Adds to *saved what it does, in bytes. */
move_result move_in_if_smaller(RedisModuleCtx *ctx, RedisModuleString *key, int64_t *saved);

/* Whether some database has a record of that name, of that kind. */
typedef enum move_kind { MOVE_ALL, MOVE_EXPIRING, MOVE_EXPIRED } move_kind;
bool move_any_record(const char *key, size_t len, move_kind kind);
/* The first database from that one on that has one; -1: none has. */
int move_db_of_record(const RedisModuleString *name, move_kind kind, int from);
/* Whether ctx's database has one. */
bool move_has_record(RedisModuleCtx *ctx, RedisModuleString *key);

/* Drops the record of a name, whose native value is newer. ctx has its database selected. */
void move_drop_record(RedisModuleCtx *ctx, RedisModuleString *key);

#endif
