/* syntax.c: from the text of a command's syntax to its arguments. See syntax.h. */
#include "commands/syntax.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define ARGS_MAX 8 /* beside one another */

typedef RedisModuleCommandArg arg;

typedef struct parser {
    RedisModuleCtx *ctx;
    const char *at;
} parser;

/* Arguments beside one another, on their way. */
typedef struct args {
    arg list[ARGS_MAX + 1]; /* one without a name is the end */
    int count;
} args;

/* ---- words ----------------------------------------------------------------------------------- */

static void skip_spaces(parser *p) {
    while (*p->at == ' ') p->at++;
}

/* Takes a character that may be next, and the spaces before it. */
static bool take(parser *p, const char *text) {
    skip_spaces(p);
    size_t len = strlen(text);
    if (strncmp(p->at, text, len)) return false;
    p->at += len;
    return true;
}

static size_t word_len(const char *at) {
    size_t len = 0;
    while (isalnum((unsigned char)at[len]) || at[len] == '-') len++;
    return len;
}

static char *take_word(parser *p) {
    size_t len = word_len(p->at);
    char *word = RedisModule_PoolAlloc(p->ctx, len + 1);
    memcpy(word, p->at, len);
    word[len] = 0;
    p->at += len;
    skip_spaces(p);
    return word;
}

/* The name of alternatives, "name:", or NULL if there is none. */
static char *take_label(parser *p) {
    size_t len = word_len(p->at);
    if (len == 0 || p->at[len] != ':' || p->at[len + 1] != ' ') return NULL;
    char *label = take_word(p);
    take(p, ":");
    skip_spaces(p);
    return label;
}

static char *lower(RedisModuleCtx *ctx, const char *word) {
    char *copy = RedisModule_PoolAlloc(ctx, strlen(word) + 1);
    char *to = copy;
    do *to++ = (char)tolower((unsigned char)*word);
    while (*word++);
    return copy;
}

static RedisModuleCommandArgType type_of(const char *name) {
    static const struct {
        const char *name;
        RedisModuleCommandArgType type;
    } types[] = {
        {"key", REDISMODULE_ARG_TYPE_KEY},
        {"pattern", REDISMODULE_ARG_TYPE_PATTERN},
        {"unix-time-seconds", REDISMODULE_ARG_TYPE_UNIX_TIME},
        {"unix-time-milliseconds", REDISMODULE_ARG_TYPE_UNIX_TIME},
        {"seconds", REDISMODULE_ARG_TYPE_INTEGER},
        {"milliseconds", REDISMODULE_ARG_TYPE_INTEGER},
        {"numkeys", REDISMODULE_ARG_TYPE_INTEGER},
        {"count", REDISMODULE_ARG_TYPE_INTEGER},
        {"cursor", REDISMODULE_ARG_TYPE_INTEGER},
        {"offset", REDISMODULE_ARG_TYPE_INTEGER},
        {"start", REDISMODULE_ARG_TYPE_INTEGER},
        {"end", REDISMODULE_ARG_TYPE_INTEGER},
        {"increment", REDISMODULE_ARG_TYPE_INTEGER},
        {"decrement", REDISMODULE_ARG_TYPE_INTEGER},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) return types[i].type;
    return REDISMODULE_ARG_TYPE_STRING;
}

/* "key", "EX seconds", "GET". */
static arg parse_word(parser *p) {
    arg a = {0};
    if (isupper((unsigned char)*p->at)) a.token = take_word(p);
    if (a.token && !islower((unsigned char)*p->at)) {
        a.name = lower(p->ctx, a.token);
        a.type = REDISMODULE_ARG_TYPE_PURE_TOKEN;
        return a;
    }
    a.name = take_word(p);
    a.type = take(p, ":double") ? REDISMODULE_ARG_TYPE_DOUBLE : type_of(a.name);
    return a;
}

/* ---- what is made of several words ----------------------------------------------------------- */

static args parse_row(parser *p);

static arg *keep(parser *p, const args *from) {
    size_t bytes = (size_t)(from->count + 1) * sizeof(arg);
    return memcpy(RedisModule_PoolAlloc(p->ctx, bytes), from->list, bytes);
}

static void add(args *to, arg a) {
    to->list[to->count++] = a;
    to->list[to->count] = (arg){0};
}

/* Several arguments as one, or the one that there is. */
static arg as_one(parser *p, const args *row, const char *name, RedisModuleCommandArgType type) {
    if (row->count == 1) return row->list[0];
    return (arg){.name = name, .type = type, .subargs = keep(p, row)};
}

/* "name: A | B", up to the bracket that closes it. */
static arg parse_alternatives(parser *p, const char *closing) {
    args choices = {0};
    skip_spaces(p);
    const char *name = take_label(p);
    do {
        args row = parse_row(p);
        add(&choices, as_one(p, &row, "block", REDISMODULE_ARG_TYPE_BLOCK));
    } while (take(p, "|"));
    take(p, closing);
    return as_one(p, &choices, name, REDISMODULE_ARG_TYPE_ONEOF);
}

/* "[key value ...]": the arguments of that number before it may be repeated. False: it is none. */
static bool parse_repetition(parser *p, args *row) {
    const char *end = strchr(p->at, ']'), *dots = strstr(p->at, "...]");
    if (!dots || dots + 3 != end) return false;
    int words = 0;
    for (const char *c = p->at; c < dots; c++) words += *c == ' ';
    args repeated = {0};
    for (int i = row->count - words; i < row->count; i++) add(&repeated, row->list[i]);
    row->count -= words;
    add(row, as_one(p, &repeated, "data", REDISMODULE_ARG_TYPE_BLOCK));
    row->list[row->count - 1].flags |= REDISMODULE_CMD_ARG_MULTIPLE;
    p->at = end + 1;
    return true;
}

static args parse_row(parser *p) {
    args row = {0};
    for (skip_spaces(p); *p->at && !strchr("|]>", *p->at); skip_spaces(p)) {
        if (take(p, "[")) {
            if (parse_repetition(p, &row)) continue;
            add(&row, parse_alternatives(p, "]"));
            row.list[row.count - 1].flags |= REDISMODULE_CMD_ARG_OPTIONAL;
        } else {
            add(&row, take(p, "<") ? parse_alternatives(p, ">") : parse_word(p));
        }
    }
    return row;
}

/* ---- arity ----------------------------------------------------------------------------------- */

/* Words that arguments take at least; *more: there may be more of them. */
static int count_words(const arg *a, bool *more) {
    int words = 0;
    for (; a->name; a++) {
        bool ignored;
        if (a->flags) *more = true;
        if (a->flags & REDISMODULE_CMD_ARG_OPTIONAL) continue;
        if (a->type == REDISMODULE_ARG_TYPE_BLOCK)
            words += count_words(a->subargs, more);
        else if (a->type == REDISMODULE_ARG_TYPE_ONEOF)
            words += count_words((arg[]){a->subargs[0], {0}}, &ignored);
        else
            words += 1 + (a->token && a->type != REDISMODULE_ARG_TYPE_PURE_TOKEN);
    }
    return words;
}

RedisModuleCommandArg *syntax_parse(RedisModuleCtx *ctx, const char *text, int *arity) {
    parser p = {ctx, text};
    args row = parse_row(&p);
    bool more = false;
    *arity = 1 + count_words(row.list, &more);
    if (more) *arity = -*arity;
    return keep(&p, &row);
}
