/*
 * filter.h: the module's one command filter.
 *
 * The server calls it before it looks a command up, for clients, scripts, the replication stream
 * and the AOF; in MULTI when a command is queued. It is registered only while a step is wanted: a
 * filter that does nothing costs every command 0.1 to 0.25 us. Commands that this module calls
 * itself (own_call.h) pass without it.
 */
#ifndef CKV_FILTER_H
#define CKV_FILTER_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/* A command that the filter is asked about. */
typedef RedisModuleCommandFilterCtx filtered;

/* What is done with a command, in this order. */
typedef enum filter_step {
    FILTER_GO_ON,     /* background/cron.c, which comes and goes, and looks for no key */
    FILTER_MAKE_ROOM, /* background/evict.c */
    FILTER_SERVE,     /* transparent/serve.c */
    FILTER_HOLD,      /* background/evict.c, again */
    FILTER_RENEW,     /* nothing: filter_renew_begin() */
    FILTER_STEPS
} filter_step;

/* From now on the step is done with each command, by `run`; NULL: no longer. */
void filter_set(RedisModuleCtx *ctx, filter_step step, RedisModuleCommandFilterFunc run);

/* Somebody attends, from now on, while steps are wanted that look for keys, before the server does:
 * `begin` runs when the first of them comes to be wanted, `look` before all steps, which are left
 * out if it says false. */
void filter_attend(void (*begin)(RedisModuleCtx *ctx), bool (*look)(filtered *command));

/* How many commands it has been asked about, so far; 0: it is not registered. */
uint64_t filter_seen(void);

/* Whether the server tells who sends a command: not Redis 7.0. */
bool filter_tells_sender(void);
/* His number; 0: nobody's that it tells of. */
uint64_t filter_sender(filtered *command);

/* Its arguments, the name counted as well. */
int filter_argc(filtered *command);
/* An argument of a command, 0 its name; it stays the command's. */
RedisModuleString *filter_arg(filtered *command, int i);
/* The arguments of a command, which the caller frees. */
RedisModuleString **filter_args(filtered *command, int *argc);

/* Another command runs in its place. The caller keeps his reference to the name. */
void filter_rename(filtered *command, RedisModuleString *name);

/*
 * Where a call names keys of several slots of a cluster, as one of a script may, Valkey 9 refuses
 * whatever the same client calls from then on (seen in 9.1.2: such a script stops all others),
 * until it looks a command up anew because a filter has changed its name. So the filter writes the
 * names of own calls anew. Where it is not registered, as no step is wanted, a call that was
 * refused is to be made again between these two. False: that is of no use.
 */
bool filter_renew_begin(RedisModuleCtx *ctx);
void filter_renew_end(RedisModuleCtx *ctx);

#endif
