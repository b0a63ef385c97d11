/*
 * transactions.h: transactions, and commands held back, that the filter knows too little of.
 *
 * The names that queued.h remembers are needed until what was queued has run. A filter is not told
 * of all that: Redis 7.0 does not say who sends a command, transactions may have begun before there
 * was a filter, a command that blocks or that a pause holds back runs when nobody looks. So from
 * time to time, while there may be any, the server is asked for its clients:
 *
 *      queued_begin, begin_unseen,
 *      hold_back, queued_await -> timer -> CLIENT LIST -> queued_counted ... -+
 *                                   ^                                         |
 *                                   +--------- until nothing is doubted ------+
 */
#ifndef CKV_TRANSACTIONS_H
#define CKV_TRANSACTIONS_H

#include "ckv.h"

/* Once, at load. */
void transactions_start(RedisModuleCtx *ctx);

/* A prefix is set, or others are: transactions may be open that no filter has seen, or that have
 * queued keys of prefixes which were not set by then. */
void transactions_begin_unseen(void);

/* A command comes while a pause of all writes holds back what it likes. What runs when the pause
 * ends is somebody's transaction until then. */
void transactions_hold_back(void);
/* Whether something may still be held back: it runs in the round of the event loop that follows the
 * pause's end. */
bool transactions_held_back(void);

/* Told from now on, between commands, which clients are in a transaction, as often as they are
 * counted: until there is no doubt which are, and then once more. One listener. */
typedef void transactions_listener(const uint64_t *clients, size_t count);
void transactions_listen(transactions_listener *told);

/* queued.h has been told of a transaction or of a command that blocks: it is counted in a second if
 * there is doubt when it will be over. */
void transactions_count(void);

#endif
