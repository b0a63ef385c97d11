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

/* Those that the server crashes for if they have it: what they queued when nobody looked may be
 * that. */
static uint64_t *doubted;
static size_t doubts;

/* What the command of a client becomes that is disconnected. */
#define CLOSING_NAME CKV_ASKING_PREFIX "closing"
static RedisModuleString *closing;

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

/* False: he was not. */
static bool doubt_no_more(uint64_t client) {
    size_t i = 0;
    while (i < doubts && doubted[i] != client) i++;
    if (i == doubts) return false;
    doubted[i] = doubted[--doubts];
    return true;
}

static void doubt(uint64_t client) {
    doubted = RedisModule_Realloc(doubted, (doubts + 1) * sizeof *doubted);
    doubted[doubts++] = client;
}

static void switched_off(uint64_t client) {
    unsigned i = find(client);
    if (i < known) remove_at(i);
}

void no_touch_forget(uint64_t client) {
    switched_off(client);
    doubt_no_more(client);
}

static void note(uint64_t client) {
    switched_off(client);
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
    if (arg_is(filter_arg(command, 2), "off")) switched_off(client);
    if (!arg_is(filter_arg(command, 2), "on")) return;
    note(client);
    if (crashes_server())
        RedisModule_CommandFilterArgReplace(command, 2, RedisModule_CreateString(NULL, "OFF", 3));
}

/* ---- those that are connected ---------------------------------------------------------------- */

static void disconnect(RedisModuleCtx *ctx, uint64_t client) {
    ckv_log("warning",
            "client %" PRIu64 " is disconnected: this server crashes where a module looks for a "
            "key before a command of a client with CLIENT NO-TOUCH ON",
            client);
    RedisModule_DeauthenticateAndCloseClient(ctx, client);
}

/* By a line of CLIENT LIST. Whether the server may look for a key of his. */
static bool look_at_client(RedisModuleCtx *ctx, const char *line) {
    const char *id = strstr(line, "id="), *flags = strstr(line, " flags=");
    if (!id || !flags) return true;
    uint64_t client = strtoull(id + strlen("id="), NULL, 10);
    flags += strlen(" flags=");
    size_t len = strcspn(flags, " ");
    bool has = memchr(flags, 'T', len), crashes = crashes_server();
    if (crashes && (has || memchr(flags, 'x', len))) doubt(client);
    if (has && crashes) disconnect(ctx, client);
    if (has && !crashes) note(client);
    return !has || !crashes;
}

/* All that CLIENT LIST tells of; the same. */
static bool look_at_list(RedisModuleCtx *ctx, RedisModuleCallReply *reply) {
    size_t len = 0;
    bool may = true;
    const char *list = reply ? RedisModule_CallReplyStringPtr(reply, &len) : NULL;
    char *text = RedisModule_Calloc(1, len + 1), *rest = text;
    if (list) memcpy(text, list, len);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) may = look_at_client(ctx, line) && may;
    RedisModule_Free(text);
    if (reply) RedisModule_FreeCallReply(reply);
    return may;
}

static void begin(RedisModuleCtx *ctx) {
    doubts = 0;
    look_at_list(ctx, own_call(ctx, renamed_to("client"), "c", "LIST"));
}

/* What a client is doubted for has run when he is in no transaction any more: the server is asked
 * until then. While he is being disconnected he is doubted still. */
static bool may_look_for(filtered *command) {
    uint64_t client = RedisModule_CommandFilterGetClientId(command);
    if (!doubt_no_more(client)) return true;
    long long id = (long long)client;
    if (look_at_list(ckv.ctx, own_call(ckv.ctx, renamed_to("client"), "ccl", "LIST", "ID", id)))
        return true;
    RedisModule_RetainString(NULL, closing);
    RedisModule_CommandFilterArgReplace(command, 0, closing);
    return false;
}

/* ---- attending the filter -------------------------------------------------------------------- */

/* Most commands are another one by the first thing that is asked. */
static bool look(filtered *command) {
    int argc = RedisModule_CommandFilterArgsCount(command);
    if (doubts > 0 && !may_look_for(command)) return false;
    if (argc == 3 && arg_is(filter_arg(command, 1), "no-touch") &&
        arg_is(filter_arg(command, 0), renamed_to("client")))
        on_no_touch(command);
    if (argc == 1 && known > 0 && arg_is(filter_arg(command, 0), "reset"))
        switched_off(RedisModule_CommandFilterGetClientId(command));
    return true;
}

/* The connection is closed behind a command that runs, not behind one that is refused. */
static int reply_closing(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argc;
    if (argv[0] != closing) return reply_error(ctx, "ERR unknown command '" CLOSING_NAME "'");
    return RedisModule_ReplyWithError(ctx, "ERR CLIENT NO-TOUCH is not allowed on this server");
}

/* Redis 7.0 knows no such clients, nor tells a filter who sends a command. */
int no_touch_start(RedisModuleCtx *ctx) {
    if (!RedisModule_CommandFilterGetClientId) return REDISMODULE_OK;
    closing = RedisModule_CreateString(NULL, CLOSING_NAME, strlen(CLOSING_NAME));
    filter_attend(begin, look);
    return RedisModule_CreateCommand(ctx, CLOSING_NAME, reply_closing,
                                     "no-auth no-monitor no-slowlog allow-loading allow-stale fast",
                                     0, 0, 0);
}

void no_touch_give_back(void) {
    if (closing) RedisModule_FreeString(NULL, closing);
    RedisModule_Free(doubted);
}
