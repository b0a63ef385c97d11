/* evict_commands.c: see evict_commands.h. */
#include "background/evict_commands.h"

#include "keyspace/queued.h"
#include "server/renamed.h"
#include "server/reply.h"

#include <string.h>

/* Clients that have queued a CONFIG REWRITE: that many of the latest are known. */
#define REWRITERS 4

static uint64_t rewriters[REWRITERS];
static unsigned rewriter; /* the latest */

/* Of most commands no more is asked. */
static bool begins_with(const char *name, const char *letters) {
    return *name && strchr(letters, *name | 0x20);
}

/* Whether a client has queued a command that writes the file; it is forgotten. */
static bool has_queued(uint64_t client) {
    bool found = false;
    for (unsigned i = 0; i < REWRITERS; i++) {
        if (rewriters[i] != client) continue;
        rewriters[i] = 0;
        found = true;
    }
    return found;
}

static bool rewrites(filtered *command) {
    return filter_argc(command) == 2 && arg_is(filter_arg(command, 1), "rewrite");
}

bool evict_rewrites_settings(filtered *command) {
    const char *name = renamed_sent(filter_arg(command, 0));
    if (!begins_with(name, "cder")) return false;
    uint64_t client = filter_sender(command);
    if (renamed_is(name, RENAMED_EXEC)) return has_queued(client);
    if (renamed_is(name, RENAMED_DISCARD) || renamed_is(name, RENAMED_RESET)) has_queued(client);
    if (!renamed_is(name, RENAMED_CONFIG) || !rewrites(command)) return false;
    if (!queued_in_transaction(client)) return true;
    rewriters[rewriter++ % REWRITERS] = client;
    return false;
}

static bool reads_and_waits(filtered *command) {
    int n = filter_argc(command);
    for (int i = 1; i < n && !arg_is(filter_arg(command, i), "streams"); i++)
        if (arg_is(filter_arg(command, i), "block")) return true;
    return false;
}

bool evict_may_block(filtered *command) {
    static const renamed_command blocking[] = {
        RENAMED_BLPOP,    RENAMED_BRPOP,    RENAMED_BLMOVE, RENAMED_BRPOPLPUSH, RENAMED_BLMPOP,
        RENAMED_BZPOPMIN, RENAMED_BZPOPMAX, RENAMED_BZMPOP, RENAMED_WAIT,       RENAMED_WAITAOF};
    const char *name = renamed_sent(filter_arg(command, 0));
    if (!begins_with(name, "bwx")) return false;
    for (size_t i = 0; i < sizeof blocking / sizeof *blocking; i++)
        if (renamed_is(name, blocking[i])) return true;
    return (renamed_is(name, RENAMED_XREAD) || renamed_is(name, RENAMED_XREADGROUP)) &&
           reads_and_waits(command);
}
