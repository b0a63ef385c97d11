/*
 * mover.h: strings move between the server's own keys and ckv, between commands, until each is
 * where it belongs:
 *
 *      in     strings under a prefix that is serving (keyspace/prefixes.h)
 *      out    records under a prefix that is leaving, as long as there is memory for them
 *
 * and, for applications that use our commands themselves, those of CKV MOVE. Either way is a walk
 * (walk.h) in slices of less than a millisecond: a share of the time that `ckv.move-cpu` says while
 * clients are busy, half of it while they are not.
 *
 * A move is no change to anybody (keyspace/move.h), so each server moves by itself; where others
 * must know of it: keyspace/replicate.h. Nothing moves while somebody counts on where things are:
 * while writes are paused, while a transaction is open that began before the filter was there, and
 * while a child saves, whose memory it would double.
 */
#ifndef CKV_MOVER_H
#define CKV_MOVER_H

#include "ckv.h"

typedef enum mover_way { MOVER_IN, MOVER_OUT, MOVER_WAYS } mover_way;

typedef struct mover_progress {
    const char *state;     /* none, working, waiting, done */
    const char *waits_for; /* empty: for nothing */
    const char *prefix;    /* of CKV MOVE; empty: none */
    uint64_t keys, looked_at, moved, left;
    int64_t saved_bytes;
    double seconds, seconds_left;
} mover_progress;

/* Once, at load. */
void mover_start(RedisModuleCtx *ctx);

/* Other keys are there than before: a file is loaded, databases are swapped. */
void mover_begin_anew(void);

/* Strings that are the server's for a while move in before their time, some at a time, so that
 * nothing has to go for them. Returns the bytes that this frees. In a cluster, where others have to
 * be told, that is left to the timer. */
size_t mover_make_room(RedisModuleCtx *ctx);

/* CKV MOVE. Returns an error, or NULL. */
const char *mover_move(mover_way way, const char *prefix, size_t len);

/* Of the walk that is on its way, or was last. */
mover_progress mover_progress_of(mover_way way);

#endif
