/* acl.c: permissions. See acl.h. */
#include "server/acl.h"

#include "server/own_call.h"
#include "server/reply.h"
#include "server/version.h"
#include "server/within.h"

#include <errno.h>
#include <string.h>

static bool trust;

bool acl_trust(bool trusted) {
    bool was = trust;
    trust = trusted;
    return was;
}

/* Before Redis 8.0 and Valkey 8.1 the server takes it for granted that there is a user when it is
 * asked for his name, and asks itself when it is to call a command as him, even one that there is
 * not. */
static bool has_user(RedisModuleCtx *ctx) {
    if (version_is_redis(REDIS_8_0) || version_is_valkey(VALKEY_8_1)) return true;
    errno = 0;
    own_call_drop(own_call(ctx, "ckv.nothing", "C"));
    return errno != ENOTSUP;
}

static RedisModuleString *user_name(RedisModuleCtx *ctx) {
    return has_user(ctx) ? RedisModule_GetCurrentUserName(ctx) : NULL;
}

RedisModuleString *acl_user_name(RedisModuleCtx *ctx) {
    return trust ? NULL : user_name(ctx);
}

bool acl_any_user(RedisModuleCtx *ctx) {
    RedisModuleString *name = user_name(ctx);
    if (name) RedisModule_FreeString(ctx, name);
    return name != NULL;
}

/* NULL: there is none. */
static int (*check_in_db)(RedisModuleUser *user, RedisModuleString **argv, int argc, int db,
                          int *reason);

bool acl_next_part(acl_part *p) {
    if (!p->rest) return false;
    const char *next = memmem(p->rest, p->rest_len, " (", 2);
    p->text = p->rest;
    p->len = next ? (size_t)(next - p->rest) : p->rest_len;
    if (p->len > 0 && p->text[p->len - 1] == ')') p->len--;
    p->rest_len -= next ? (size_t)(next - p->rest) + 2 : p->rest_len;
    p->rest = next ? next + 2 : NULL;
    return true;
}

void acl_start(void) {
    RedisModule_GetApi("ValkeyModule_ACLCheckPermissions", (void *)&check_in_db);
}

bool acl_knows_dbs(void) {
    return check_in_db != NULL;
}

bool acl_may_run(RedisModuleUser *user, RedisModuleString **argv, int argc, int db) {
    if (check_in_db) return check_in_db(user, argv, argc, db, NULL) == REDISMODULE_OK;
    return RedisModule_ACLCheckCommandPermissions(user, argv, argc) == REDISMODULE_OK;
}

/* A command and what it reads, or writes, besides the keys that the server knows of. */
typedef struct access {
    RedisModuleCtx *ctx;
    RedisModuleString **argv;
    int argc;
    RedisModuleString *key; /* NULL: all */
    bool writes;
} access;

/* Rules as the server tells them: words with a space between, "allkeys" as ~*. */
typedef struct rules {
    const char *text;
    size_t len;
} rules;

bool acl_has_word(const char *text, size_t text_len, const char *word) {
    size_t len = strlen(word);
    const char *end = text + text_len, *at = text;
    while ((at = memmem(at, (size_t)(end - at), word, len))) {
        bool begins = at == text || at[-1] == ' ';
        at += len;
        if (begins && (at == end || *at == ' ')) return true;
    }
    return false;
}

static bool has_word(rules r, const char *word) {
    return acl_has_word(r.text, r.len, word);
}

/* Whether a user with these rules may read or write it. The server can be asked about one key only,
 * and no key stands for all of them: the rules have to say it. */
static bool may_access(RedisModuleUser *user, rules r, const access *a) {
    if (!a->key)
        return has_word(r, "~*") || has_word(r, a->writes ? "%W~*" : "%R~*") ||
               has_word(r, "%RW~*");
    int flags = a->writes ? REDISMODULE_CMD_KEY_UPDATE : REDISMODULE_CMD_KEY_ACCESS;
    return RedisModule_ACLCheckKeyPermissions(user, a->key, flags) == REDISMODULE_OK;
}

/* Each word in quotes, as it may have some in it, which the server would take for its own. */
static char *quote_words(rules r) {
    char *text = RedisModule_Alloc(3 * r.len + sizeof "\"\""), *to = text;
    *to++ = '"';
    for (size_t i = 0; i < r.len; i++) {
        if (r.text[i] == ' ') *to++ = '"';
        if (r.text[i] == '"' || r.text[i] == '\\') *to++ = '\\';
        *to++ = r.text[i];
        if (r.text[i] == ' ') *to++ = '"';
    }
    memcpy(to, "\"", sizeof "\"");
    return text;
}

RedisModuleUser *acl_make_user(RedisModuleCtx *ctx, const char *text, size_t len, bool all_keys) {
    char *words = quote_words((rules){text, len});
    RedisModuleUser *user = RedisModule_CreateModuleUser("ckv");
    RedisModule_SetModuleUserACLString(ctx, user, words, NULL);
    if (all_keys) RedisModule_SetModuleUserACLString(ctx, user, "allkeys allchannels", NULL);
    RedisModule_Free(words);
    return user;
}

/* Whether a user with nothing but these rules may do it. */
static bool alone_allows(rules r, const access *a) {
    RedisModuleUser *user = acl_make_user(a->ctx, r.text, r.len, false);
    bool allowed = acl_may_run(user, a->argv, a->argc, RedisModule_GetSelectedDb(a->ctx)) &&
                   may_access(user, r, a);
    RedisModule_FreeModuleUser(user);
    return allowed;
}

/* As for keys that the server knows of, one of the parts has to allow both the command and the key.
 */
static bool user_allows(RedisModuleUser *user, rules all, const access *a) {
    acl_part p = {.rest = all.text, .rest_len = all.len};
    if (!memmem(all.text, all.len, " (", 2))
        return may_access(user, all, a); /* the server has asked for the command */
    while (acl_next_part(&p))
        if (alone_allows((rules){p.text, p.len}, a)) return true;
    return false;
}

void acl_reply_refusal(RedisModuleCtx *ctx, const char *text, const char *in_old_script) {
    bool script = within_script();
    reply_error(ctx, "%s%s",
                !script            ? "NOPERM "
                : version_is_7_0() ? "ERR "
                                   : "ERR ACL failure in script: ",
                script && version_is_7_0() ? in_old_script : text);
}

void acl_reply_key_denied(RedisModuleCtx *ctx) {
    acl_reply_refusal(
        ctx,
        version_is_7_0()
            ? "this user has no permissions to access one of the keys used as arguments"
            : "No permissions to access a key",
        "The user executing the script can't access at least one of the keys mentioned in the "
        "command arguments");
}

/* Asks for the user behind the call; replies if he may not. */
static bool check(const access *a) {
    RedisModuleString *name = acl_user_name(a->ctx);
    if (!name) return true;
    /* A user who has been deleted is not found, and may nothing. */
    RedisModuleUser *user = RedisModule_GetModuleUserFromUserName(name);
    bool allowed = false;
    if (user) {
        rules r;
        RedisModuleString *text = RedisModule_GetModuleUserACLString(user);
        r.text = RedisModule_StringPtrLen(text, &r.len);
        allowed = user_allows(user, r, a);
        RedisModule_FreeString(NULL, text);
        if (!allowed)
            RedisModule_ACLAddLogEntry(a->ctx, user, a->key ? a->key : a->argv[0],
                                       REDISMODULE_ACL_LOG_KEY);
        RedisModule_FreeModuleUser(user);
    }
    RedisModule_FreeString(a->ctx, name);
    if (!allowed) acl_reply_key_denied(a->ctx);
    return allowed;
}

bool acl_may_read(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, RedisModuleString *key) {
    access a = {ctx, argv, argc, key, false};
    return check(&a);
}

bool acl_may_write(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                   RedisModuleString *key) {
    access a = {ctx, argv, argc, key, true};
    return check(&a);
}

bool acl_may_read_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    access a = {ctx, argv, argc, NULL, false};
    return check(&a);
}

bool acl_may_write_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    access a = {ctx, argv, argc, NULL, true};
    return check(&a);
}
