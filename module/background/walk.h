/*
 * walk.h: a walk over all strings of the server's own, or over all records, in slices.
 *
 * Keys may come, go and change meanwhile. What is there from the start to the end is met at least
 * once: the server's keys by its SCAN, records by their map and their position in it
 * (core/map/map_scan.h). After SWAPDB and when a file has been loaded, a walk begins anew.
 */
#ifndef CKV_WALK_H
#define CKV_WALK_H

#include "ckv.h"

typedef enum walk_over { WALK_NATIVE_STRINGS, WALK_RECORDS } walk_over;

/* Whether a key is to be told of. */
typedef bool walk_wanted(const char *key, size_t len);

typedef struct walk {
    walk_over over;
    walk_wanted *wanted;
    int db;
    RedisModuleScanCursor *cursor; /* of the database; NULL: not begun */
    uint64_t place, position;      /* the same of records */
    RedisModuleString **names;     /* that were found, from the first that was not told of yet */
    size_t first, count, room;
    int found_in;             /* their database */
    uint64_t keys, looked_at; /* over strings: keys of any type */
} walk;

typedef enum walk_answer { WALK_KEY, WALK_NO_KEY, WALK_END } walk_answer;

void walk_begin(walk *w, RedisModuleCtx *ctx, walk_over over, walk_wanted *wanted);
/* Ends it before its end; one that has ended may be ended. */
void walk_end(walk *w);

/* Goes a step. WALK_KEY: *name is a key, which the caller frees, and ctx has its database selected;
 * it may have changed since it was found. */
walk_answer walk_step(walk *w, RedisModuleCtx *ctx, RedisModuleString **name);
/* The key that it has just told of is told of once more, next. It is the walk's again. */
void walk_again(walk *w);

#endif
