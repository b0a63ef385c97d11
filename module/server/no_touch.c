/* no_touch.c: see no_touch.h. */
#include "server/no_touch.h"

#include "ckv.h"
#include "server/client_list.h"
#include "server/filter.h"
#include "server/names.h"
#include "server/renamed.h"
#include "server/reply.h"
#include "server/version.h"

#include <inttypes.h>
#include <string.h>

#define KNOWN_MOST 64

static uint64_t clients[KNOWN_MOST]; /* the latest last */
static unsigned known;

/* Those that the server crashes for if they have it: what they queued, or what is held back of
 * theirs, when nobody looked may be that. By number; NULL: none. What stands there is NULL until
 * one is being disconnected. */
static RedisModuleDict *doubted;

/* What the command of a client becomes that is disconnected; who has subscribed may send few. */
#define CLOSING_NAME CKV_ASKING_PREFIX "closing"
static RedisModuleString *closing, *quit;

static bool listed; /* when the filter began to look for keys */

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

static void doubt(uint64_t client, bool disconnected) {
    names_put(&doubted, &client, sizeof client, disconnected ? clients : NULL);
}

static void switched_off(uint64_t client) {
    unsigned i = find(client);
    if (i < known) remove_at(i);
}

void no_touch_forget(uint64_t client) {
    switched_off(client);
    names_drop(&doubted, &client, sizeof client);
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
    return !version_is_redis(REDIS_8_6) && !version_is_valkey(VALKEY_9_1);
}

static void on_no_touch(filtered *command) {
    uint64_t client = filter_sender(command);
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

/* In a transaction, held back, or just not any more. */
static bool has_unseen(const listed_client *client) {
    return listed_client_has(client, 'x') || listed_client_has(client, 'b') ||
           listed_client_has(client, 'u');
}

/* `instead`: what takes the place of his command, if the server may not look for keys before it. */
static void look_at(RedisModuleCtx *ctx, const listed_client *client, void *instead) {
    bool has = listed_client_has(client, 'T');
    if (has && !crashes_server()) note(client->id);
    if (!crashes_server()) return;
    bool disconnected = names_drop(&doubted, &client->id, sizeof client->id) != NULL;
    if (has || has_unseen(client)) doubt(client->id, has);
    if (has && !disconnected) disconnect(ctx, client->id);
    if (has) *(RedisModuleString **)instead = listed_client_has(client, 'P') ? quit : closing;
}

static void begin(RedisModuleCtx *ctx) {
    RedisModuleString *instead;
    names_free(&doubted);
    listed = client_list(ctx, 0, look_at, &instead);
    if (!listed && crashes_server())
        ckv_log("warning", "CLIENT goes by a name that is not known: this server crashes where "
                           "somebody has CLIENT NO-TOUCH ON already");
}

/* What a client is doubted for has run when he is in no transaction and not held back any more: the
 * server is asked until then. While he is being disconnected he is doubted still. */
static bool may_look_for(filtered *command) {
    RedisModuleString *instead = NULL;
    uint64_t client = filter_sender(command);
    if (!names_have(doubted, &client, sizeof client)) return true;
    client_list(ckv.ctx, client, look_at, &instead);
    if (!instead) return true;
    filter_rename(command, instead);
    return false;
}

/* ---- attending the filter -------------------------------------------------------------------- */

static bool is_sent(filtered *command, renamed_command which) {
    return renamed_is(renamed_sent(filter_arg(command, 0)), which);
}

/* Most commands are another one by the first thing that is asked. */
static bool look(filtered *command) {
    int argc = filter_argc(command);
    if (doubted && !may_look_for(command)) return false;
    if (argc == 3 && arg_is(filter_arg(command, 1), "no-touch") &&
        is_sent(command, RENAMED_CLIENT)) {
        if (!listed) begin(ckv.ctx);
        on_no_touch(command);
    }
    if (argc == 1 && known > 0 && is_sent(command, RENAMED_RESET))
        switched_off(filter_sender(command));
    return true;
}

/* The connection is closed behind a command that runs, not behind one that is refused. */
static int reply_closing(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argc;
    if (argv[0] != closing) return reply_unknown_command(ctx);
    return RedisModule_ReplyWithError(ctx, "ERR CLIENT NO-TOUCH is not allowed on this server");
}

/* Redis 7.0 knows no such clients, nor tells a filter who sends a command. */
int no_touch_start(RedisModuleCtx *ctx) {
    if (!filter_tells_sender()) return REDISMODULE_OK;
    closing = RedisModule_CreateString(NULL, CLOSING_NAME, strlen(CLOSING_NAME));
    quit = RedisModule_CreateString(NULL, "QUIT", strlen("QUIT"));
    filter_attend(begin, look);
    return RedisModule_CreateCommand(ctx, CLOSING_NAME, reply_closing,
                                     "no-auth no-monitor no-slowlog allow-loading allow-stale fast",
                                     0, 0, 0);
}

void no_touch_give_back(void) {
    if (closing) RedisModule_FreeString(NULL, closing);
    if (quit) RedisModule_FreeString(NULL, quit);
}
