/* no_touch.c: see no_touch.h. */
#include "server/no_touch.h"

#include "ckv.h"
#include "server/filter.h"
#include "server/own_call.h"
#include "server/renamed.h"
#include "server/reply.h"
#include "server/version.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_MOST 64

static uint64_t clients[KNOWN_MOST]; /* the latest last */
static unsigned known;

/* ---- who they are ---------------------------------------------------------------------------- */

/* Where a client is; `known`: nowhere. */
static unsigned find(uint64_t client) {
    unsigned i = 0;
    while (i < known && clients[i] != client) i++;
    return i;
}

static void remove_at(unsigned i) {
    known--;
    memmove(&clients[i], &clients[i + 1], (known - i) * sizeof *clients);
}

void no_touch_forget(uint64_t client) {
    unsigned i = find(client);
    if (i < known) remove_at(i);
}

static void note(uint64_t client) {
    no_touch_forget(client);
    if (known == KNOWN_MOST) remove_at(0);
    clients[known++] = client;
}

bool no_touch(RedisModuleCtx *ctx) {
    return known > 0 && find(RedisModule_GetClientId(ctx)) < known;
}

/* ---- commands -------------------------------------------------------------------------------- */

static bool crashes_server(void) {
    return !version_is_redis(REDIS_8_6) && !version_is_valkey(9.1);
}

static void on_no_touch(filtered *command) {
    uint64_t client = RedisModule_CommandFilterGetClientId(command);
    if (arg_is(filter_arg(command, 2), "off")) no_touch_forget(client);
    if (!arg_is(filter_arg(command, 2), "on")) return;
    note(client);
    if (crashes_server())
        RedisModule_CommandFilterArgReplace(command, 2, RedisModule_CreateString(NULL, "OFF", 3));
}

/* Most commands are another one by the first thing that is asked. */
static void look(filtered *command) {
    int argc = RedisModule_CommandFilterArgsCount(command);
    if (argc == 3 && arg_is(filter_arg(command, 1), "no-touch") &&
        arg_is(filter_arg(command, 0), renamed_to("client")))
        on_no_touch(command);
    if (argc == 1 && known > 0 && arg_is(filter_arg(command, 0), "reset"))
        no_touch_forget(RedisModule_CommandFilterGetClientId(command));
}

/* ---- those that are connected ---------------------------------------------------------------- */

/* A line of CLIENT LIST. */
static void look_at_client(RedisModuleCtx *ctx, const char *line) {
    const char *id = strstr(line, "id="), *flags = strstr(line, " flags=");
    if (!id || !flags) return;
    flags += strlen(" flags=");
    if (!memchr(flags, 'T', strcspn(flags, " "))) return;
    uint64_t client = strtoull(id + strlen("id="), NULL, 10);
    if (!crashes_server()) {
        note(client);
        return;
    }
    ckv_log("warning",
            "client %" PRIu64 " is disconnected: this server crashes where a module looks for a "
            "key before a command of a client with CLIENT NO-TOUCH ON",
            client);
    RedisModule_DeauthenticateAndCloseClient(ctx, client);
}

static void begin(RedisModuleCtx *ctx) {
    RedisModuleCallReply *reply = own_call(ctx, renamed_to("client"), "c", "LIST");
    size_t len = 0;
    const char *list = reply ? RedisModule_CallReplyStringPtr(reply, &len) : NULL;
    char *text = RedisModule_Calloc(1, len + 1), *rest = text;
    if (list) memcpy(text, list, len);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) look_at_client(ctx, line);
    RedisModule_Free(text);
    if (reply) RedisModule_FreeCallReply(reply);
}

/* Redis 7.0 knows no such clients, nor tells a filter who sends a command. */
void no_touch_start(void) {
    if (RedisModule_CommandFilterGetClientId) filter_attend(begin, look);
}
