/* catalogue.c: the server's commands. See catalogue.h. */
#include "transparent/catalogue.h"

#include "commands/command_table.h"
#include "keyspace/places.h"
#include "server/filter.h"
#include "server/own_call.h"
#include "server/renamed.h"

#include <ctype.h>
#include <string.h>

#define SLOTS_LOG2 11 /* of the table: a server has some 400 commands, and modules bring more */
#define CELLS      (1u << SLOTS_LOG2)

static catalogue_entry table[CELLS];
static size_t count;
static bool any_renamed;

/* Four bytes in lower case, or nearly so: what it does to other bytes than letters is no matter. */
static uint32_t four_bytes(const char *at) {
    uint32_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    return bytes | 0x20202020;
}

/* Of the first and the last bytes and the length: reading all would be a third of what most
 * commands cost here. */
static uint32_t hash_of(const char *name, size_t len) {
    uint64_t ends = len < 4 ? (name[0] | 0x20u) << 8 | (name[len - 1] | 0x20u)
                            : (uint64_t)four_bytes(name) << 32 | four_bytes(name + len - 4);
    return (uint32_t)((ends ^ len) * 0x9e3779b97f4a7c15u >> (64 - SLOTS_LOG2));
}

/* The name in the table is in lower case. */
static bool same(const char *lower, const char *name, size_t len) {
    for (size_t i = 0; i < len; i++) {
        char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
        if (lower[i] != c || !c) return false;
    }
    return lower[len] == 0;
}

static catalogue_entry *cell_of(const char *name, size_t len) {
    uint32_t at = hash_of(name, len);
    while (*table[at].name && !same(table[at].name, name, len)) at = (at + 1) % CELLS;
    return &table[at];
}

const catalogue_entry *catalogue_own(const char *name, size_t len) {
    if (len == 0 || len > CATALOGUE_NAME_MAX) return NULL;
    const catalogue_entry *e = cell_of(name, len);
    return *e->name ? e : NULL;
}

const catalogue_entry *catalogue_find(const char *name, size_t len) {
    const catalogue_entry *e = catalogue_own(name, len);
    if (!any_renamed || (e && !e->renamed)) return e;
    const char *own = renamed_own_name(name, len);
    return own ? catalogue_own(own, strlen(own)) : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static long long number(RedisModuleCallReply *command, size_t i) {
    return RedisModule_CallReplyInteger(RedisModule_CallReplyArrayElement(command, i));
}

static bool has_word(RedisModuleCallReply *command, size_t element, const char *word) {
    RedisModuleCallReply *words = RedisModule_CallReplyArrayElement(command, element);
    for (size_t i = 0; words && i < RedisModule_CallReplyLength(words); i++)
        if (own_call_told(RedisModule_CallReplyArrayElement(words, i), word)) return true;
    return false;
}

static bool has_flag(RedisModuleCallReply *command, const char *flag) {
    return has_word(command, 2, flag);
}

static bool has_category(RedisModuleCallReply *command, const char *category) {
    return has_word(command, 6, category);
}

/* Bits and HyperLogLogs are strings that only the server reads; COPY, RESTORE and others make
 * strings of its own. */
static bool leaves_strings(RedisModuleCallReply *command) {
    if (has_category(command, "@bitmap") || has_category(command, "@hyperloglog")) return true;
    return has_flag(command, "write") &&
           (has_category(command, "@string") || has_category(command, "@keyspace"));
}

/* "flags", of one of the places where a command names keys. */
static bool is_no_key(RedisModuleCallReply *place) {
    for (size_t i = 0; i + 1 < RedisModule_CallReplyLength(place); i += 2)
        if (own_call_told(RedisModule_CallReplyArrayElement(place, i), "flags"))
            return has_word(place, i + 1, "not_key");
    return false;
}

/* Whether what stands where keys would is none: channels, which a cluster spreads as it does keys.
 */
static bool names_no_key(RedisModuleCallReply *command) {
    RedisModuleCallReply *places = RedisModule_CallReplyArrayElement(command, 8);
    size_t n = places ? RedisModule_CallReplyLength(places) : 0;
    for (size_t i = 0; i < n; i++)
        if (!is_no_key(RedisModule_CallReplyArrayElement(places, i))) return false;
    return n > 0;
}

static RedisModuleCallReply *subcommands(RedisModuleCallReply *command) {
    return RedisModule_CallReplyArrayElement(command, 9);
}

/* Whether a subcommand has keys. */
static bool subcommand_has_keys(RedisModuleCallReply *command) {
    RedisModuleCallReply *subs = subcommands(command);
    for (size_t i = 0; subs && i < RedisModule_CallReplyLength(subs); i++) {
        RedisModuleCallReply *sub = RedisModule_CallReplyArrayElement(subs, i);
        if (number(sub, 3) > 0 || has_flag(sub, "movablekeys")) return true;
    }
    return false;
}

/* Commands that are not what their keys say: those of a script are read by commands of its own. */
static bool special_kind(const char *name, catalogue_kind *kind) {
    static const struct {
        const char *name;
        catalogue_kind kind;
    } specials[] = {
        {"multi", COMMAND_MULTI},       {"exec", COMMAND_EXEC},       {"discard", COMMAND_DISCARD},
        {"reset", COMMAND_DISCARD},     {"config", COMMAND_ACL},      {"acl", COMMAND_ACL},
        {"sort", COMMAND_SORT},         {"sort_ro", COMMAND_SORT},    {"debug", COMMAND_DEBUG},
        {"eval", COMMAND_SCRIPT},       {"eval_ro", COMMAND_SCRIPT},  {"evalsha", COMMAND_SCRIPT},
        {"evalsha_ro", COMMAND_SCRIPT}, {"fcall", COMMAND_SCRIPT},    {"fcall_ro", COMMAND_SCRIPT},
        {"watch", COMMAND_WATCH},       {"cluster", COMMAND_CLUSTER}, {"unwatch", COMMAND_UNWATCH},
        {"client", COMMAND_CLIENT},
    };
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        if (strcmp(specials[i].name, name)) continue;
        *kind = specials[i].kind;
        if (*kind == COMMAND_SCRIPT && !places_are_slots()) *kind = COMMAND_KEYLESS;
        return true;
    }
    return false;
}

static catalogue_kind kind_of(RedisModuleCallReply *command, const catalogue_entry *e) {
    catalogue_kind kind;
    if (special_kind(e->name, &kind)) return kind;
    if (e->served != CATALOGUE_NOT_SERVED) return COMMAND_SERVED;
    if (names_no_key(command)) return COMMAND_KEYLESS;
    if (has_flag(command, "movablekeys")) return COMMAND_ASK;
    if (e->first > 0) return COMMAND_RANGE;
    return subcommand_has_keys(command) ? COMMAND_ASK : COMMAND_KEYLESS;
}

/* Whether a command is one of ours: these know records, and are not to be served again. */
static bool is_ours(const char *name) {
    for (const command_entry *e = command_table; e->name; e++)
        if (!strcmp(e->name, name)) return true;
    return ckv_stands_for(name, strlen(name)) != NULL;
}

/* Whether a command that waited looks at several keys when one of them has come to be. Redis 7.0
 * only looks at those that it is to write. */
static bool looks_again(const catalogue_entry *e) {
    bool runs_again = filter_tells_sender(); /* which is as old */
    return e->last > e->first || (runs_again && (e->kind == COMMAND_ASK || e->last < 0));
}

/* COPY and MOVE name another one, scripts select what they like, and of a module's command nobody
 * knows. */
static bool keeps_to_one_db(RedisModuleCallReply *command, const catalogue_entry *e) {
    bool names_another = !strcmp(e->name, "copy") || !strcmp(e->name, "move");
    return !names_another && e->kind != COMMAND_SCRIPT && !has_flag(command, "module");
}

static void add(RedisModuleCallReply *command, catalogue_served *served) {
    size_t len;
    const char *name =
        RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(command, 0), &len);
    if (!name || len == 0 || len > CATALOGUE_NAME_MAX || count >= CELLS / 2) return;
    catalogue_entry e = {.arity = (int16_t)number(command, 1),
                         .first = (int16_t)number(command, 3),
                         .last = (int16_t)number(command, 4),
                         .step = (int16_t)number(command, 5)};
    for (size_t i = 0; i < len; i++) e.name[i] = (char)tolower((unsigned char)name[i]);
    e.served = served(e.name);
    if (e.served == CATALOGUE_OURS || is_ours(e.name)) return;
    e.kind = (uint8_t)kind_of(command, &e);
    RedisModuleCallReply *subs = subcommands(command);
    e.container = subs && RedisModule_CallReplyLength(subs) > 0;
    if (e.kind == COMMAND_KEYLESS) return;
    e.leaves_strings = leaves_strings(command);
    e.one_db = keeps_to_one_db(command, &e);
    e.reads = has_flag(command, "readonly");
    e.blocks = has_flag(command, "blocking") && looks_again(&e);
    catalogue_entry *cell = cell_of(e.name, len);
    count += !*cell->name;
    *cell = e;
}

static void look_for_renamed(RedisModuleCtx *ctx) {
    RedisModuleString *names[CELLS / 2 + 1];
    catalogue_entry *entries[CELLS / 2 + 1];
    bool renamed[CELLS / 2 + 1];
    size_t n = 0;
    for (catalogue_entry *e = table; e < table + CELLS; e++) {
        if (!*e->name) continue;
        entries[n] = e;
        names[n++] = RedisModule_CreateString(ctx, e->name, strlen(e->name));
    }
    renamed_which(ctx, names, n, renamed);
    any_renamed = false;
    for (size_t i = 0; i < n; i++) {
        any_renamed |= entries[i]->renamed = renamed[i];
        RedisModule_FreeString(ctx, names[i]);
    }
}

void catalogue_read(RedisModuleCtx *ctx, catalogue_served *served) {
    RedisModuleCallReply *all = own_call(ctx, "command", "");
    memset(table, 0, sizeof table);
    count = 0;
    for (size_t i = 0; all && i < RedisModule_CallReplyLength(all); i++)
        add(RedisModule_CallReplyArrayElement(all, i), served);
    if (!all)
        RedisModule_Log(ctx, "warning",
                        "COMMAND can't be called (rename-command?): nothing is served under "
                        "ckv.prefixes");
    own_call_drop(all);
    look_for_renamed(ctx);
}
