/*
 * renamed.h: names that redis.conf gives commands of the server (rename-command).
 *
 * COMMAND tells every command by its own name, so it is found out which ones don't go by theirs,
 * and by what name they do when somebody sends it.
 */
#ifndef CKV_RENAMED_H
#define CKV_RENAMED_H

#include "ckv.h"

/* Commands that are looked for behind other names. Not all that there are: Valkey 9.1 keeps what it
 * tells of each, a kilobyte, and a small limit of memory has no room for that. */
#define RENAMED_LOOKED_FOR(X)                                                                      \
    X(CONFIG, "config")                                                                            \
    X(EXEC, "exec")                                                                                \
    X(DISCARD, "discard")                                                                          \
    X(RESET, "reset")                                                                              \
    X(CLIENT, "client")                                                                            \
    X(BLPOP, "blpop")                                                                              \
    X(BRPOP, "brpop")                                                                              \
    X(BLMOVE, "blmove")                                                                            \
    X(BLMPOP, "blmpop")                                                                            \
    X(BRPOPLPUSH, "brpoplpush")                                                                    \
    X(BZPOPMIN, "bzpopmin")                                                                        \
    X(BZPOPMAX, "bzpopmax")                                                                        \
    X(BZMPOP, "bzmpop")                                                                            \
    X(WAIT, "wait")                                                                                \
    X(XREAD, "xread")                                                                              \
    X(XREADGROUP, "xreadgroup")                                                                    \
    X(BGSAVE, "bgsave")                                                                            \
    X(SAVE, "save")                                                                                \
    X(PSYNC, "psync")                                                                              \
    X(SYNC, "sync")                                                                                \
    X(SHUTDOWN, "shutdown")                                                                        \
    X(DEBUG, "debug")                                                                              \
    X(BGREWRITEAOF, "bgrewriteaof")                                                                \
    X(WAITAOF, "waitaof") /* the last: Redis 7.0 has none */

typedef enum renamed_command {
#define ID(id, name) RENAMED_##id,
    RENAMED_LOOKED_FOR(ID)
#undef ID
} renamed_command;

/* At the start: what is asked for of a server takes some memory of it, which a limit may have no
 * room for later. No command is renamed while a server runs. */
void renamed_start(void);

/* Which of so many commands that there are have other names than their own. Asks the server once.
 */
void renamed_which(RedisModuleCtx *ctx, RedisModuleString *const *commands, size_t count,
                   bool *renamed);

/* A command that the module itself calls, or tells replicas and an AOF, and that does not go by its
 * own name; NULL: all do. Asks the server. */
const char *renamed_needed(void);

/* The own name of the command that goes by `name`, in any case; NULL: there is none. Asks the
 * server once for each name of a command, by which it is called from then on (own_call.h). Owned
 * here. */
const char *renamed_own_name(const char *name, size_t len);

/* What a command is that somebody has sent: its own name, in any case, or one of no command.
 * Asks the server where some command has been renamed; else it is what was sent, whose it is. */
const char *renamed_sent(const RedisModuleString *name);
/* Whether that is one of those that are looked for. */
bool renamed_is(const char *sent, renamed_command command);

#endif
