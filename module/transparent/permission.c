/* permission.c: whether a user may have a command served. See permission.h. */
#include "transparent/permission.h"

#include "keyspace/maps.h"
#include "keyspace/queued.h"
#include "server/acl.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "server/version.h"
#include "server/within.h"
#include "transparent/catalogue.h"
#include "transparent/user_rules.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- the way --------------------------------------------------------------------------------- */

static bool is_default(const RedisModuleString *name) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(name, &len);
    return len == strlen(USER_RULES_DEFAULT) && !memcmp(text, USER_RULES_DEFAULT, len);
}

static bool user_may(RedisModuleUser *user, const char *name, RedisModuleString **argv, int argc,
                     int db) {
    RedisModuleString *sent = argv[0];
    const char *called = own_call_name(name);
    argv[0] = RedisModule_CreateString(NULL, called, strlen(called));
    bool may = acl_may_run(user, argv, argc, db);
    RedisModule_FreeString(NULL, argv[0]);
    argv[0] = sent;
    return may;
}

/* The command that the filter came by last, if its sender may run it and it runs at once: then it
 * need not ask again. */
static struct {
    uint64_t sender; /* QUEUED_ANYBODY: there is none */
    int number;
} passed;

static void note_passed(uint64_t sender, int number) {
    if (queued_open(sender) || user_rules_now()->changing) return;
    passed.sender = sender;
    passed.number = number;
}

/* Who sends a command, and the database that he has selected. NULL: nobody that the server could
 * tell of, or who has not authenticated. */
static RedisModuleUser *user_of_sender(uint64_t id, int *db) {
    /* This asks the kernel for an address as well. */
    RedisModuleClientInfo client = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
    const user_rules *users = user_rules_now();
    bool by_db = acl_knows_dbs() && (users->by_db || users->changing || !users->known);
    if (by_db && RedisModule_GetClientInfoById(&client, id) != REDISMODULE_OK) return NULL;
    RedisModuleString *who = RedisModule_GetClientUserNameById(ckv.ctx, id);
    if (!who) return NULL;
    RedisModuleUser *user = RedisModule_GetModuleUserFromUserName(who);
    RedisModule_FreeString(ckv.ctx, who);
    *db = client.db;
    return user;
}

/* In which database a command will be that is queued a SELECT before it may have changed. */
static bool may_elsewhere(RedisModuleUser *user, uint64_t id, RedisModuleString **argv, int argc) {
    bool may = false;
    if (!acl_knows_dbs() || !user_rules_now()->by_db || !queued_open(id)) return false;
    for (int db = 0; db < maps_dbs() && !may; db++) may = acl_may_run(user, argv, argc, db);
    return may;
}

typedef enum rights {
    RIGHTS_UNKNOWN, /* of a sender who is, or of the database */
    RIGHTS_NONE,
    RIGHTS_SENT, /* the command that was sent */
    RIGHTS_BOTH, /* and ours that stands for it */
} rights;

static rights rights_of(filtered *command, uint64_t id, int number, bool ours) {
    char name[64];
    const char *served = user_rules_now()->names[number];
    int db, argc;
    RedisModuleUser *user = user_of_sender(id, &db);
    if (!user) return RIGHTS_UNKNOWN;
    RedisModuleString **argv = filter_args(command, &argc);
    snprintf(name, sizeof name, "%s%s", CKV_SERVED_PREFIX, served);
    rights r = !user_may(user, served, argv, argc, db)
                   ? (may_elsewhere(user, id, argv, argc) ? RIGHTS_UNKNOWN : RIGHTS_NONE)
               : ours && user_may(user, name, argv, argc, db) ? RIGHTS_BOTH
                                                              : RIGHTS_SENT;
    RedisModule_Free(argv);
    RedisModule_FreeModuleUser(user);
    return r;
}

/* Who may not is left to the server, which says so, will not queue the command, and counts and logs
 * it as rejected. */
static permission_way way_of_user(filtered *command, uint64_t id, int number) {
    rights r = rights_of(command, id, number, false);
    if (r == RIGHTS_NONE) return PERMISSION_DENIED;
    if (r == RIGHTS_SENT) note_passed(id, number);
    return PERMISSION_ASKING;
}

/* The default user, or somebody who has not authenticated. */
static permission_way way_of_default(filtered *command, uint64_t id, int number) {
    rights r = rights_of(command, id, number, true);
    if (r == RIGHTS_NONE) return PERMISSION_DENIED;
    if (r != RIGHTS_BOTH) return PERMISSION_NATIVE;
    note_passed(id, number);
    return PERMISSION_BY_RULES;
}

/* Where the default user has a password, or is off: who has sent the command decides. */
static permission_way way_of_sender(filtered *command, int number) {
    /* Whoever runs a script has authenticated. */
    if (within_script()) return PERMISSION_ASKING;
    if (!filter_tells_sender()) return PERMISSION_NATIVE;
    uint64_t id = filter_sender(command);
    RedisModuleString *name = RedisModule_GetClientUserNameById(ckv.ctx, id);
    if (!name) return PERMISSION_ASKING; /* the primary, or a module on behalf of somebody */
    bool may_be_nobody = is_default(name);
    RedisModule_FreeString(ckv.ctx, name);
    return may_be_nobody ? way_of_default(command, id, number) : way_of_user(command, id, number);
}

permission_way permission_way_of(filtered *command, int number) {
    const user_rules *users = user_rules_now();
    passed.sender = QUEUED_ANYBODY;
    if (user_rules_look() && users->all[number]) return PERMISSION_BY_RULES;
    if (users->default_password) return way_of_sender(command, number);
    if (!filter_tells_sender()) return PERMISSION_ASKING;
    /* Who came before it was off is served on. */
    if (users->default_off) return way_of_sender(command, number);
    return way_of_user(command, filter_sender(command), number);
}

bool permission_may_send(filtered *command) {
    int db, argc;
    if (!filter_tells_sender()) return true;
    uint64_t id = filter_sender(command);
    RedisModuleUser *user = user_of_sender(id, &db);
    if (!user) return true;
    RedisModuleString **argv = filter_args(command, &argc);
    bool may = acl_may_run(user, argv, argc, db) || may_elsewhere(user, id, argv, argc);
    RedisModule_Free(argv);
    RedisModule_FreeModuleUser(user);
    return may;
}

bool permission_changes_by(filtered *command) {
    static const char *const words[] = {"setuser", "deluser", "load"};
    int argc = filter_argc(command);
    for (size_t w = 0; argc > 1 && w < sizeof words / sizeof *words; w++)
        if (arg_is(filter_arg(command, 1), words[w])) return true;
    for (int i = 2; i < argc; i += 2)
        if (arg_is(filter_arg(command, i), "requirepass")) return true;
    return false;
}

void permission_change(void) {
    user_rules_change();
    passed.sender = QUEUED_ANYBODY;
}

bool permission_changing(void) {
    return user_rules_now()->changing;
}

void permission_changed(void) {
    if (user_rules_changed()) passed.sender = QUEUED_ANYBODY;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool has_passed(RedisModuleCtx *ctx, int number) {
    uint64_t sender = passed.sender;
    passed.sender = QUEUED_ANYBODY;
    return sender != QUEUED_ANYBODY && sender == RedisModule_GetClientId(ctx) &&
           passed.number == number;
}

static bool is_container(const char *name) {
    const catalogue_entry *e = catalogue_own(name, strlen(name));
    return e && e->container;
}

/* A command that somebody may not run. */
typedef struct refusal {
    RedisModuleCtx *ctx;
    RedisModuleUser *user; /* NULL: he has been deleted */
    RedisModuleString *who;
    const char *name;
    RedisModuleString **argv;
    int argc;
} refusal;

/* Whether it is for the keys. */
static bool denied_keys(const refusal *r) {
    if (!r->user || r->argc < 2) return false;
    size_t len;
    RedisModuleString *rules = RedisModule_GetModuleUserACLString(r->user);
    acl_part p = {.rest = RedisModule_StringPtrLen(rules, &len)};
    bool may = false;
    for (p.rest_len = len; !may && acl_next_part(&p);) {
        RedisModuleUser *with_all_keys = acl_make_user(ckv.ctx, p.text, p.len, true);
        may = user_may(with_all_keys, r->name, r->argv, r->argc, RedisModule_GetSelectedDb(r->ctx));
        RedisModule_FreeModuleUser(with_all_keys);
    }
    RedisModule_FreeString(NULL, rules);
    return may;
}

/* The log names the first key: which of several it was the server tells nobody. */
static void refuse_keys(const refusal *r) {
    bool second = (is_container(r->name) || !strcmp(r->name, "msetex")) && r->argc > 2;
    RedisModule_ACLAddLogEntry(r->ctx, r->user, r->argv[second ? 2 : 1], REDISMODULE_ACL_LOG_KEY);
    acl_reply_key_denied(r->ctx);
}

static void refuse_command(const refusal *r) {
    char name[64], text[256];
    bool container = is_container(r->name) && r->argc > 1;
    snprintf(name, sizeof name, "%s%s%s", r->name, container ? "|" : "",
             container ? RedisModule_StringPtrLen(r->argv[1], NULL) : "");
    for (char *c = name; *c; c++) *c = (char)tolower((unsigned char)*c);
    RedisModuleString *object = RedisModule_CreateString(NULL, name, strlen(name));
    if (r->user) RedisModule_ACLAddLogEntry(r->ctx, r->user, object, REDISMODULE_ACL_LOG_CMD);
    RedisModule_FreeString(NULL, object);
    if (version_is_7_0())
        snprintf(text, sizeof text, "this user has no permissions to run the '%s' command", name);
    else
        snprintf(text, sizeof text, "User %s has no permissions to run the '%s' command",
                 RedisModule_StringPtrLen(r->who, NULL), name);
    acl_reply_refusal(r->ctx, text,
                      "The user executing the script can't run this command or subcommand");
}

bool permission_ask(RedisModuleCtx *ctx, int number, RedisModuleString **argv, int argc,
                    bool may_be_nobody) {
    const char *name = user_rules_now()->names[number];
    RedisModuleString *who = has_passed(ctx, number) ? NULL : acl_user_name(ctx);
    if (!who) return true;
    refusal r = {ctx, RedisModule_GetModuleUserFromUserName(who), who, name, argv, argc};
    bool unknown =
        may_be_nobody && !within_script() && is_default(who) && user_rules_default_is_off();
    bool may =
        !unknown && r.user && user_may(r.user, name, argv, argc, RedisModule_GetSelectedDb(ctx));
    if (unknown)
        RedisModule_ReplyWithError(ctx, "NOAUTH Authentication required.");
    else if (!may && denied_keys(&r))
        refuse_keys(&r);
    else if (!may)
        refuse_command(&r);
    if (r.user) RedisModule_FreeModuleUser(r.user);
    RedisModule_FreeString(ctx, who);
    return may;
}

bool permission_of_all(int number) {
    const user_rules *users = user_rules_now();
    return !users->changing && user_rules_look() && users->all[number];
}
