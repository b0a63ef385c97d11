/*
 * scanning.h: what the commands that list keys have in common: whom they ask, which of the keys
 * that they are told are users', and where a scan stands.
 *
 * A scan goes over the server's own keys, then over the records. A record that moves out meanwhile
 * may have become a key where the first phase has passed by already: if any has, it goes over the
 * server's own keys once more. A cursor has bits for that below those of the phase's own, which is
 * a small number where there are few keys: some clients hold 32 bits, and all of them 53:
 *
 *      52             5 4      3   2     1     0
 *      +---------------+--------+-------+-------+
 *      | cursor        | times  | moved | phase |    the cursor is the phase's
 *      +---------------+--------+-------+-------+
 *
 *      times   how many calls of anybody had found that records moved out, modulo 4
 *      moved   some have between two calls of this scan
 */
#ifndef CKV_SCANNING_H
#define CKV_SCANNING_H

#include "ckv.h"

typedef enum scan_phase { SCAN_NATIVE, SCAN_RECORDS, SCAN_NATIVE_AGAIN } scan_phase;

/* A cursor, taken apart. */
typedef struct scan_position {
    uint64_t at; /* the cursor of the phase */
    scan_phase phase;
    bool moved;
} scan_position;

/* Once for each call of a scan, before a position is read. */
void scanning_look_for_moves(void);

/* False: it is none that this server has given. */
bool scanning_read_position(uint64_t number, scan_position *p);
uint64_t scanning_write_position(const scan_position *p);

/* Goes on behind a phase; false: that was the last. */
bool scanning_next_phase(scan_position *p);

/* Whether a key that the server has told of is one that it would have without ckv; whether a record
 * is one of those that are served. */
typedef bool scanning_wanted(RedisModuleCtx *ctx, RedisModuleString *key);
scanning_wanted scanning_is_users, scanning_is_served;

/* Calls the server's own command or ours, as nobody: whoever may list the server's keys may list
 * them all; with an argument and `count` more, or (NULL) without any. If it meets what has expired,
 * replicas are told. The caller frees the reply. */
RedisModuleCallReply *scanning_ask(RedisModuleCtx *ctx, const char *command,
                                   RedisModuleString *first, RedisModuleString *const *more,
                                   size_t count);
bool scanning_is_array(RedisModuleCallReply *reply);

/* Keys that are to be told; all 0 at first. */
typedef struct scanned {
    RedisModuleString **keys;
    size_t count;
    size_t left_out; /* of the array that was taken last */
} scanned;

/* Takes those keys of an array that are wanted. At once: a map may go when what follows meets what
 * has expired in it. */
void scanned_take(RedisModuleCtx *ctx, scanned *s, RedisModuleCallReply *keys,
                  scanning_wanted *wanted);
void scanned_free(RedisModuleCtx *ctx, scanned *s);

#endif
