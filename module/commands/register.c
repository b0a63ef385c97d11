/* register.c: commands, as the server wants to be told of them. */
#include "commands/register.h"

#include "ckv.h"
#include "commands/syntax.h"
#include "keyspace/held.h"
#include "keyspace/places.h"
#include "server/version.h"

#include <stdio.h>
#include <string.h>

#define SINCE "1.0.0"

/* First, last and step, as RM_CreateCommand has them. KEYS_COUNTED: only a key spec can say it. */
static const int legacy_range[][3] = {
    [KEYS_NONE] = {0, 0, 0},  [KEYS_ONE] = {1, 1, 1},     [KEYS_SECOND] = {2, 2, 1},
    [KEYS_THIRD] = {3, 3, 1}, [KEYS_ALL] = {1, -1, 1},    [KEYS_PAIRS] = {1, -1, 2},
    [KEYS_STORE] = {1, 1, 1}, [KEYS_COUNTED] = {0, 0, 0},
};

bool register_first_only(void) {
    return version_is_valkey(VALKEY_ANY) && places_are_slots();
}

/* As the server is told. */
static command_keys keys_of(const command_entry *e) {
    return e->keys == KEYS_COUNTED && register_first_only() ? KEYS_SECOND : e->keys;
}

/* Redis before 8.4 and Valkey see the first half of counted keys with values only, and would check
 * the user's permissions for no more: they ask the command. Who looks for the slot on io-threads
 * must not, as that is a race for the count of what is executed: newer ones of Redis, which see
 * all, and Valkey in a cluster, which is told of the first. */
static bool must_ask(const command_entry *e) {
    return keys_of(e) == KEYS_COUNTED && !version_is_redis(REDIS_8_4);
}

static RedisModuleCommandKeySpec key_spec(const command_entry *e) {
    command_keys keys = keys_of(e);
    RedisModuleCommandKeySpec spec = {
        .flags = e->key_flags,
        .begin_search_type = REDISMODULE_KSPEC_BS_INDEX,
        .bs.index.pos = keys == KEYS_COUNTED ? 1 : legacy_range[keys][0],
    };
    if (keys == KEYS_COUNTED) {
        if (must_ask(e)) spec.flags |= REDISMODULE_CMD_KEY_INCOMPLETE;
        spec.find_keys_type = REDISMODULE_KSPEC_FK_KEYNUM;
        spec.fk.keynum.keynumidx = 0;
        spec.fk.keynum.firstkey = 1;
        spec.fk.keynum.keystep = 2;
    } else {
        spec.find_keys_type = REDISMODULE_KSPEC_FK_RANGE;
        spec.fk.range.lastkey = keys == KEYS_ALL || keys == KEYS_PAIRS ? -1 : 0;
        spec.fk.range.keystep = legacy_range[keys][2];
    }
    return spec;
}

/* Of KEYS_STORE: the key that is written. */
static RedisModuleCommandKeySpec destination_spec(const command_entry *e) {
    RedisModuleCommandKeySpec spec = {
        .flags = REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_UPDATE |
                 (e->key_flags & REDISMODULE_CMD_KEY_NOT_KEY),
        .begin_search_type = REDISMODULE_KSPEC_BS_KEYWORD,
        .bs.keyword.keyword = "STORE",
        .bs.keyword.startfrom = 2,
        .find_keys_type = REDISMODULE_KSPEC_FK_RANGE,
        .fk.range.keystep = 1,
    };
    return spec;
}

static bool describe(RedisModuleCtx *ctx, RedisModuleCommand *c, const command_entry *e) {
    RedisModuleCommandKeySpec specs[] = {key_spec(e), {0}, {0}};
    if (e->keys == KEYS_STORE) specs[1] = destination_spec(e);
    RedisModuleCommandInfo info = {
        .version = REDISMODULE_COMMAND_INFO_VERSION,
        .summary = e->summary,
        .complexity = e->complexity,
        .since = SINCE,
        .arity = -1,
        .tips = e->tips,
        .key_specs = e->keys == KEYS_NONE ? NULL : specs,
    };
    if (e->syntax) info.args = syntax_parse(ctx, e->syntax, &info.arity);
    return RedisModule_SetCommandInfo(c, &info) == REDISMODULE_OK;
}

static bool own_category;

/* Categories of ACL, where the server lets modules have them (Redis 7.2; one of their own: 7.4). */
static bool categorize(RedisModuleCommand *c, const command_entry *e) {
    char text[128];
    if (!RedisModule_SetCommandACLCategories) return true;
    /* Who may read or write keys may not for that administer what is about all of them. */
    const char *kind = strstr(e->categories, "admin") ? ""
                       : strstr(e->flags, "write")    ? "write "
                       : strstr(e->flags, "readonly") ? "read "
                                                      : "";
    snprintf(text, sizeof text, "%s%s %s%s", kind, strstr(e->flags, "fast") ? "fast" : "slow",
             e->categories, own_category && e->syntax ? " " CKV_NAME : "");
    return RedisModule_SetCommandACLCategories(c, text) == REDISMODULE_OK;
}

/* Valkey 9.1 has users of some databases: what is about no keys but about all of them is not for
 * these. */
static bool is_about_all_dbs(const command_entry *e) {
    return e->keys == KEYS_NONE && e->syntax && strstr(e->categories, "admin") &&
           version_is_valkey(VALKEY_9_1);
}

int register_command(RedisModuleCtx *ctx, const command_entry *e) {
    char flags[128];
    const int *range = legacy_range[keys_of(e)];
    snprintf(flags, sizeof flags, "%s%s%s", e->flags, must_ask(e) ? " getkeys-api" : "",
             is_about_all_dbs(e) ? " all-dbs" : "");
    if (RedisModule_CreateCommand(ctx, e->name, e->function, flags, range[0], range[1], range[2]) !=
        REDISMODULE_OK)
        return REDISMODULE_ERR;
    held_know(e->name, e->function);
    RedisModuleCommand *c = RedisModule_GetCommand(ctx, e->name);
    return c && describe(ctx, c, e) && categorize(c, e) ? REDISMODULE_OK : REDISMODULE_ERR;
}

int register_commands(RedisModuleCtx *ctx) {
    own_category =
        RedisModule_AddACLCategory && RedisModule_AddACLCategory(ctx, CKV_NAME) == REDISMODULE_OK;
    for (const command_entry *e = command_table; e->name; e++)
        if (register_command(ctx, e) != REDISMODULE_OK) return REDISMODULE_ERR;
    return REDISMODULE_OK;
}
