/* permission.c: whether a user may have a command served. See permission.h. */
#include "transparent/permission.h"

#include "core/base/siphash.h"
#include "keyspace/maps.h"
#include "keyspace/names.h"
#include "keyspace/queued.h"
#include "server/acl.h"
#include "server/clock.h"
#include "server/own_call.h"
#include "server/reply.h"
#include "server/version.h"
#include "server/within.h"
#include "transparent/catalogue.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_USER "default"
/* Of a command that is only asked about. */
#define LEAST_WORDS 3
#define MOST_WORDS  8
/* To look at all users takes this share of the time at most, 1 in n, while their rules change. */
#define LOOK_SHARE 100

static struct {
    const char *const *names;
    int count;
    bool changing;                  /* the rules may, at any moment */
    uint64_t looked_us, took_us;    /* when all were looked at last, and how long that took */
    bool known;                     /* what follows is still true */
    uint64_t rules;                 /* a hash of those that it follows from */
    bool all[PERMISSION_NAMES_MAX]; /* every user may run both commands */
    bool default_off;               /* the default user is off */
    bool default_password;          /* it is on and has a password */
    bool by_db;                     /* some user's rules are for some databases only */
} users;

/* ---- the rules of all users ------------------------------------------------------------------ */

/* What is served of commands that have subcommands, and how many words that takes. */
typedef struct example {
    const char *name, *word;
    int words;
} example;

static const example examples[] = {{"object", "encoding", 3},  {"object", "freq", 3},
                                   {"object", "idletime", 3},  {"object", "refcount", 3},
                                   {"memory", "usage", 3},     {"cluster", "countkeysinslot", 3},
                                   {"config", "resetstat", 2}, {"client", "unpause", 2}};

/* A rule may name the first word behind a command: this one nobody knows. */
static char unknown_word[sizeof "k" + 16];

/* Whether a user of these rules, whatever the keys, may run a command. */
static bool may_run(RedisModuleUser *user, const char *prefix, const example *e) {
    char text[64];
    RedisModuleString *argv[MOST_WORDS];
    int len = snprintf(text, sizeof text, "%s%s", prefix, e->name);
    if (e->words > MOST_WORDS) return false;
    argv[0] = RedisModule_CreateString(NULL, text, (size_t)len);
    for (int i = 1; i < e->words; i++) {
        const char *word = i == 1 ? e->word : unknown_word;
        argv[i] = RedisModule_CreateString(NULL, word, strlen(word));
    }
    bool may = RedisModule_ACLCheckCommandPermissions(user, argv, e->words) == REDISMODULE_OK;
    for (int i = 0; i < e->words; i++) RedisModule_FreeString(NULL, argv[i]);
    return may;
}

/* Whether he may run both the server's command and ours, or neither if that is enough. */
static bool is_alike(RedisModuleUser *user, const example *e, bool both) {
    bool server = may_run(user, "", e), ours = may_run(user, CKV_SERVED_PREFIX, e);
    return server == ours && (ours || !both);
}

/* As many words as the command takes: Redis 8 says no to any other number. */
static bool is_alike_by_name(RedisModuleUser *user, const char *name, bool both) {
    bool alike = true, any = false;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        if (strcmp(examples[i].name, name)) continue;
        any = true;
        alike = alike && is_alike(user, &examples[i], both);
    }
    if (any) return alike;
    const catalogue_entry *of = catalogue_own(name, strlen(name));
    int arity = of ? of->arity : -1;
    int words = arity > 0 ? arity : arity < -LEAST_WORDS ? -arity : LEAST_WORDS;
    return is_alike(user, &(example){name, unknown_word, words}, both);
}

/* Of some rules, for each command. To find it out takes up to a millisecond, and most users have
 * the rules of others: all but passwords, keys and channels. */
typedef struct verdict {
    bool alike[PERMISSION_NAMES_MAX];
} verdict;

#define VERDICTS_MAX 1000 /* then they are forgotten */

static RedisModuleDict *verdicts; /* by the hash of the rules; NULL: none */

static uint64_t hash_of_rules(const acl_part *p, bool first) {
    uint64_t key[2] = {ckv.secret[0] + first, ckv.secret[1]};
    for (size_t at = 0, len; at < p->len; at += len + 1) {
        const char *word = p->text + at, *end = memchr(word, ' ', p->len - at);
        len = end ? (size_t)(end - word) : p->len - at;
        if (len > 0 && !memchr("#~%&", *word, 4)) key[0] = siphash13(word, len, key);
    }
    return key[0];
}

static verdict *find_out(const acl_part *p, bool first) {
    verdict *v = RedisModule_Calloc(1, sizeof *v);
    RedisModuleUser *user = acl_make_user(ckv.ctx, p->text, p->len, true);
    for (int i = 0; i < users.count; i++)
        v->alike[i] = is_alike_by_name(user, users.names[i], first);
    RedisModule_FreeModuleUser(user);
    return v;
}

static void forget_verdicts(void) {
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(verdicts, "^", NULL, 0);
    size_t len;
    void *v;
    while (RedisModule_DictNextC(it, &len, &v)) RedisModule_Free(v);
    RedisModule_DictIteratorStop(it);
    names_free(&verdicts);
}

static const verdict *verdict_on(const acl_part *p, bool first) {
    uint64_t hash = hash_of_rules(p, first);
    verdict *v = verdicts ? RedisModule_DictGetC(verdicts, &hash, sizeof hash, NULL) : NULL;
    if (v) return v;
    if (verdicts && RedisModule_DictSize(verdicts) == VERDICTS_MAX) forget_verdicts();
    if (!verdicts) verdicts = RedisModule_CreateDict(NULL);
    RedisModule_DictSetC(verdicts, &hash, sizeof hash, v = find_out(p, first));
    return v;
}

/* A user may run what any of his parts allows, with the keys that are in this part. So the first
 * one has to allow both commands, and of no other may the server's judgement of ours be another
 * than of its own. */
static void look_at_rules(const char *rules, size_t len) {
    acl_part p = {.rest = rules, .rest_len = len};
    for (bool first = true; acl_next_part(&p); first = false) {
        const verdict *v = verdict_on(&p, first);
        for (int i = 0; i < users.count; i++) users.all[i] = users.all[i] && v->alike[i];
    }
}

/* Of one whose rules are for some databases what he may is asked command by command. */
static void take_by_db(void) {
    users.by_db = true;
    memset(users.all, 0, sizeof users.all);
}

/* "on nopass ~* +@all", of the default user. */
static void look_at_default(const char *rules, size_t len) {
    users.default_off = acl_has_word(rules, len, "off");
    users.default_password = !users.default_off && !acl_has_word(rules, len, "nopass");
}

/* "user <name> on nopass ~* +@all" */
static void look_at_user(const char *line, size_t len) {
    const char *name = line + strlen("user ");
    const char *rules = memchr(name, ' ', len - strlen("user "));
    if (!rules) return;
    size_t name_len = (size_t)(rules - name), rules_len = len - (size_t)(++rules - line);
    if (name_len == strlen(DEFAULT_USER) && !memcmp(name, DEFAULT_USER, name_len))
        look_at_default(rules, rules_len);
    if (memmem(rules, rules_len, " db=", 4) || memmem(rules, rules_len, "(db=", 4))
        take_by_db();
    else
        look_at_rules(rules, rules_len);
}

/* "user ..." for each. */
static void derive(RedisModuleCallReply *list, size_t n) {
    size_t len;
    for (int i = 0; i < users.count; i++) users.all[i] = n > 0;
    users.by_db = false;
    users.default_password = true; /* where ACL can't be called */
    for (size_t i = 0; i < n; i++) {
        const char *line =
            RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(list, i), &len);
        if (line && len > strlen("user ")) look_at_user(line, len);
    }
}

static uint64_t hash_of(RedisModuleCallReply *list, size_t n) {
    uint64_t key[2] = {ckv.secret[0], ckv.secret[1]};
    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *line =
            RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(list, i), &len);
        key[0] = siphash13(line, len, key);
    }
    return key[0];
}

/* Anybody can send an ACL command that is refused. Redis 7.0 does not tell who sends what else
 * comes, so that all have to be looked at again for it. */
static bool may_look(void) {
    return !filter_tells_sender() ||
           clock_monotonic_us() - users.looked_us >= users.took_us * LOOK_SHARE;
}

/* To ask what each user may takes long. */
static void look_at_users(void) {
    uint64_t began_us = clock_monotonic_us();
    RedisModuleCallReply *list = own_call(ckv.ctx, "acl|list", "c", "LIST");
    size_t n = list ? RedisModule_CallReplyLength(list) : 0;
    uint64_t rules = hash_of(list, n);
    if (n == 0 || users.rules == 0 || rules != users.rules) derive(list, n);
    users.rules = rules;
    users.known = true;
    if (list) RedisModule_FreeCallReply(list);
    users.looked_us = clock_monotonic_us();
    users.took_us = users.looked_us - began_us;
}

/* Of the default user alone, now: what is known of all is of other rules from then on, also if
 * these come to be again what they were. */
static void ask_for_default(void) {
    size_t len;
    RedisModuleString *name = RedisModule_CreateString(NULL, DEFAULT_USER, strlen(DEFAULT_USER));
    RedisModuleUser *user = RedisModule_GetModuleUserFromUserName(name);
    RedisModuleString *text = RedisModule_GetModuleUserACLString(user);
    const char *rules = RedisModule_StringPtrLen(text, &len);
    bool off = users.default_off, password = users.default_password;
    look_at_default(rules, len);
    if (off != users.default_off || password != users.default_password) users.rules = 0;
    RedisModule_FreeString(NULL, text);
    RedisModule_FreeModuleUser(user);
    RedisModule_FreeString(NULL, name);
}

/* While rules change: who may what is asked command by command, unless all can be looked at now.
 * Then, and at other times, it is known what every user may. */
static bool look(void) {
    if (users.known && !users.changing) return true;
    bool at_all = !users.changing || may_look();
    if (at_all)
        look_at_users();
    else
        ask_for_default();
    return at_all;
}

static bool default_is_off(void) {
    if (users.changing)
        ask_for_default();
    else
        look();
    return users.default_off;
}

void permission_start(const char *const *names, int count) {
    users.names = names;
    users.count = count;
    snprintf(unknown_word, sizeof unknown_word, "k%016llx", (unsigned long long)ckv.secret[0]);
}

/* ---- the way --------------------------------------------------------------------------------- */

static bool is_default(const RedisModuleString *name) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(name, &len);
    return len == strlen(DEFAULT_USER) && !memcmp(text, DEFAULT_USER, len);
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
    if (queued_open(sender) || users.changing) return;
    passed.sender = sender;
    passed.number = number;
}

/* Who sends a command, and the database that he has selected. NULL: nobody that the server could
 * tell of, or who has not authenticated. */
static RedisModuleUser *user_of_sender(uint64_t id, int *db) {
    /* This asks the kernel for an address as well. */
    RedisModuleClientInfo client = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
    bool by_db = acl_knows_dbs() && (users.by_db || users.changing || !users.known);
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
    if (!acl_knows_dbs() || !users.by_db || !queued_open(id)) return false;
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
    int db, argc;
    RedisModuleUser *user = user_of_sender(id, &db);
    if (!user) return RIGHTS_UNKNOWN;
    RedisModuleString **argv = filter_args(command, &argc);
    snprintf(name, sizeof name, "%s%s", CKV_SERVED_PREFIX, users.names[number]);
    rights r = !user_may(user, users.names[number], argv, argc, db)
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
    passed.sender = QUEUED_ANYBODY;
    if (look() && users.all[number]) return PERMISSION_BY_RULES;
    if (users.default_password) return way_of_sender(command, number);
    if (!filter_tells_sender()) return PERMISSION_ASKING;
    /* Who came before it was off is served on. */
    if (users.default_off) return way_of_sender(command, number);
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

static void forget(void) {
    users.known = false;
    passed.sender = QUEUED_ANYBODY;
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
    forget();
    users.changing = true;
}

bool permission_changing(void) {
    return users.changing;
}

void permission_changed(void) {
    if (!may_look()) return;
    forget();
    users.changing = false;
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
    const char *name = users.names[number];
    RedisModuleString *who = has_passed(ctx, number) ? NULL : acl_user_name(ctx);
    if (!who) return true;
    refusal r = {ctx, RedisModule_GetModuleUserFromUserName(who), who, name, argv, argc};
    bool unknown = may_be_nobody && !within_script() && is_default(who) && default_is_off();
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
    return !users.changing && look() && users.all[number];
}
