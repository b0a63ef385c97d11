/* user_rules.c: what the rules of all users say. See user_rules.h. */
#include "transparent/user_rules.h"

#include "core/base/siphash.h"
#include "server/acl.h"
#include "server/clock.h"
#include "server/filter.h"
#include "server/names.h"
#include "server/own_call.h"
#include "transparent/catalogue.h"

#include <stdio.h>
#include <string.h>

/* Of a command that is only asked about. */
#define LEAST_WORDS 3
#define MOST_WORDS  8
/* To look at all users takes this share of the time at most, 1 in n, while their rules change. */
#define LOOK_SHARE 100

static user_rules users;

static struct {
    uint64_t looked_us, took_us; /* when all were looked at last, and how long that took */
    uint64_t rules;              /* a hash of those that what is known follows from */
} last;

const user_rules *user_rules_now(void) {
    return &users;
}

/* ---- a user's rules -------------------------------------------------------------------------- */

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
    bool alike[USER_RULES_NAMES_MAX];
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

static const verdict *verdict_on(const acl_part *p, bool first) {
    uint64_t hash = hash_of_rules(p, first);
    verdict *v = names_get(verdicts, &hash, sizeof hash);
    if (v) return v;
    if (verdicts && RedisModule_DictSize(verdicts) == VERDICTS_MAX) names_free_values(&verdicts);
    names_put(&verdicts, &hash, sizeof hash, v = find_out(p, first));
    return v;
}

/* ---- the rules of all users ------------------------------------------------------------------ */

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
    if (name_len == strlen(USER_RULES_DEFAULT) && !memcmp(name, USER_RULES_DEFAULT, name_len))
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
           clock_monotonic_us() - last.looked_us >= last.took_us * LOOK_SHARE;
}

/* To ask what each user may takes long. */
static void look_at_users(void) {
    uint64_t began_us = clock_monotonic_us();
    RedisModuleCallReply *list = own_call(ckv.ctx, "acl|list", "c", "LIST");
    size_t n = list ? RedisModule_CallReplyLength(list) : 0;
    uint64_t rules = hash_of(list, n);
    if (n == 0 || last.rules == 0 || rules != last.rules) derive(list, n);
    last.rules = rules;
    users.known = true;
    own_call_drop(list);
    last.looked_us = clock_monotonic_us();
    last.took_us = last.looked_us - began_us;
}

/* Of the default user alone, now: what is known of all is of other rules from then on, also if
 * these come to be again what they were. */
static void ask_for_default(void) {
    size_t len;
    RedisModuleString *name =
        RedisModule_CreateString(NULL, USER_RULES_DEFAULT, strlen(USER_RULES_DEFAULT));
    RedisModuleUser *user = RedisModule_GetModuleUserFromUserName(name);
    RedisModuleString *text = RedisModule_GetModuleUserACLString(user);
    const char *rules = RedisModule_StringPtrLen(text, &len);
    bool off = users.default_off, password = users.default_password;
    look_at_default(rules, len);
    if (off != users.default_off || password != users.default_password) last.rules = 0;
    RedisModule_FreeString(NULL, text);
    RedisModule_FreeModuleUser(user);
    RedisModule_FreeString(NULL, name);
}

bool user_rules_look(void) {
    if (users.known && !users.changing) return true;
    bool at_all = !users.changing || may_look();
    if (at_all)
        look_at_users();
    else
        ask_for_default();
    return at_all;
}

bool user_rules_default_is_off(void) {
    if (users.changing)
        ask_for_default();
    else
        user_rules_look();
    return users.default_off;
}

void user_rules_change(void) {
    users.known = false;
    users.changing = true;
}

bool user_rules_changed(void) {
    if (!may_look()) return false;
    users.known = users.changing = false;
    return true;
}

void user_rules_start(const char *const *names, int count) {
    users.names = names;
    users.count = count;
    snprintf(unknown_word, sizeof unknown_word, "k%016llx", (unsigned long long)ckv.secret[0]);
}
