/*
 * maxmemory.h: the limits of memory, how near they are, and what the policy says of records.
 *
 * There are two: the server's `maxmemory`, and `ckv.maxmemory` for what ckv's records take alone. A
 * write is refused here when the second is reached and nothing may go; the server itself refuses by
 * the first. Who makes room before that: background/evict.h.
 */
#ifndef CKV_MAXMEMORY_H
#define CKV_MAXMEMORY_H

#include "ckv.h"
#include "core/map/map_evict.h"

/* What the settings say: but the server's limit without what it is raised by (maxmemory_raise). */
typedef struct maxmemory_settings {
    uint64_t wanted_limit; /* the server's, bytes; 0: none. The other is ckv.config.maxmemory */
    uint64_t server_limit; /* as it is now: more, on its way down; see maxmemory_step_down() */
    bool limited;          /* there is one of the two */
    bool evicts;           /* the policy is other than noeviction */
    bool expiring_only;    /* it is volatile-* */
    map_evict_order order;
} maxmemory_settings;

/* Reads the settings: at the start, and when one of them has changed; the server's limit only if it
 * is one of these. */
void maxmemory_configure(RedisModuleCtx *ctx, bool server_limit);
const maxmemory_settings *maxmemory_now(void);

/* The share of a limit that is free when it is nearly reached. */
#define MAXMEMORY_NEAR 0.03
/* No more bytes than these are kept free, however large a limit is. */
#define MAXMEMORY_FREE_MOST (64.0 * (1 << 20))

/* Bytes to free so that a share of each limit stays free beside what is reserved: of the limit that
 * is exceeded by more; negative: there is room. */
double maxmemory_excess(double free_share, size_t reserved);
/* The same of ckv.maxmemory alone. */
double maxmemory_own_excess(double free_share, size_t reserved);
/* The same of the server's limit as it is now. */
double maxmemory_server_excess(double free_share, size_t reserved);

/* Bytes that strings may still take before anything would have to go for them. Where the server has
 * no limit, the machine's memory is. */
int64_t maxmemory_room(void);

/* When the user lowers the server's limit, the server would at once evict what is too much, map by
 * map, or we would at once evict all of it, record by record. So the setting is held a little above
 * what is used, and goes down to where it is wanted as room is made, or at once if none is. */
void maxmemory_hold(void);
/* Whether it is above that. */
bool maxmemory_held(void);
void maxmemory_step_down(bool room_is_made);

/* Where the server looks at memory with nobody asked before, its setting stands so many bytes above
 * all that; to us the limit is where it would be. */
void maxmemory_raise(uint64_t bytes);
uint64_t maxmemory_raised(void);
/* Whether the setting is another one than was asked for, by either. */
bool maxmemory_moved(void);
/* Whether a setting changes because of that. */
bool maxmemory_stepping(void);

/* Bytes that the records and what was learned of them take: of the latter at most half of
 * ckv.maxmemory, because what takes more is about to be replaced (background/train.c). */
uint64_t maxmemory_records_used(void);

/* Whether what a command stores must be refused: ckv.maxmemory is reached and nothing may go. It is
 * decided at the start of a command, which must do all that it does, or nothing. */
bool maxmemory_refuses(void);
void maxmemory_decide(void);
/* A command that stores several things may store the next, as it did the first: who was told of
 * that may have called a command, for which it was decided anew. */
void maxmemory_permit(void);

/* Bytes have been stored; and how many, since the start. */
void maxmemory_note_written(size_t bytes);
uint64_t maxmemory_written(void);

/* Whether reads of records are to be counted as uses, for eviction. */
bool maxmemory_counts_reads(void);
/* The uses that writing a record counts as. */
uint8_t maxmemory_uses_of_write(void);

#endif
