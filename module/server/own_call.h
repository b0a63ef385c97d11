/*
 * own_call.h: commands of the server that this module calls itself.
 *
 * They pass the command filter unseen. What other modules call when they are told of what ours does
 * goes through it as any command: the server's own flag for this, NOSELF, would let it pass as
 * well. But it comes in the midst of a command of the server, which counts on the keys that it has
 * in hand: until ours is done no string moves into ckv and nothing is evicted. Main thread.
 */
#ifndef CKV_OWN_CALL_H
#define CKV_OWN_CALL_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * RedisModule_Call() of a command by its own name as INFO counts it, in lower case and kept by the
 * caller meanwhile, whatever name it goes by: of one of a container's ("memory|usage") the second
 * word is an argument as well. What stands behind may call nothing.
 */
#define own_call(ctx, command, ...)                                                                \
    own_call_end(RedisModule_Call(ctx, own_call_begin(command), __VA_ARGS__))

/* For own_call() only. */
const char *own_call_begin(const char *command);
RedisModuleCallReply *own_call_end(RedisModuleCallReply *reply);

/* The name that a command is called by: its own, unless it is known to go by another (renamed.h).
 * Owned here, or it is the one given. */
const char *own_call_name(const char *command);
void own_call_goes_by(const char *command, const char *name);

/* Whether a reply is this text; NULL is none. */
bool own_call_told(RedisModuleCallReply *reply, const char *text);

/* Frees a reply, if there is one. */
void own_call_drop(RedisModuleCallReply *reply);

/* How many have run, since the start. */
uint64_t own_calls_ended(void);

/* The server counts what a command of ours calls beside that command: how often a command ran from
 * here, and how often it failed, so that INFO can leave it out (transparent/serve_info.c). */
typedef struct own_call_counts {
    uint64_t calls, failures;
} own_call_counts;
own_call_counts own_calls_of(const char *command);
/* From now on none has run. */
void own_calls_forget(void);

/* Whether a command of ours is under way. */
bool own_call_open(void);

/* The filter's: whether the command of that name, which it is asked about, is ours. By the name,
 * as another filter may be asked first and call a command itself; in any case, as it may write the
 * name anew. Where it writes another one ours is not known: what is called deep within such calls
 * counts as ours, or each would lead to the next without end. */
bool own_call_comes(const RedisModuleString *name);
/* The filter was not asked about those that are under way. */
void own_call_unseen(void);

/* Gives back what is known: the module is not loaded after all. */
void own_call_give_back(void);

#endif
