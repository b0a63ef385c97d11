/* own_call.c: commands of the server that this module calls itself. See own_call.h. */
#include "server/own_call.h"

#include "server/names.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* One within another, as who is told of one may send us another, and a filter that is asked before
 * ours as well. Deeper ones are not told apart. */
#define DEEPEST 16

#define CONTAINER_MAX_LEN 31

typedef struct call {
    const char *command;
    const char
        *coming; /* the name that it is called by; NULL: the filter has been asked about it */
    char container[CONTAINER_MAX_LEN + 1];
} call;

static call calls[DEEPEST + 1];
static int open;
static uint64_t ended;

static RedisModuleDict *names;   /* by command; of those that don't go by their own */
static RedisModuleDict *counted; /* by command; own_call_counts */

static void *find(RedisModuleDict *d, const char *command) {
    return names_get(d, command, strlen(command));
}

void own_call_give_back(void) {
    names_free_values(&names);
    names_free_values(&counted);
}

static call *call_at(int depth) {
    return &calls[depth < DEEPEST ? depth : DEEPEST];
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *own_call_name(const char *command) {
    const char *name = find(names, command);
    return name ? name : command;
}

void own_call_goes_by(const char *command, const char *name) {
    names_put(&names, command, strlen(command), RedisModule_Strdup(name));
}

/* What stands before "|", kept in `c`, or all. */
static const char *container_of(call *c, const char *command) {
    size_t len = strcspn(command, "|");
    if (!command[len] || len > CONTAINER_MAX_LEN) return command;
    memcpy(c->container, command, len);
    c->container[len] = 0;
    return c->container;
}

/* ---- counting -------------------------------------------------------------------------------- */

static void count(const char *command, bool failed) {
    own_call_counts *c = find(counted, command);
    if (!c) names_put(&counted, command, strlen(command), c = RedisModule_Calloc(1, sizeof *c));
    c->calls++;
    c->failures += failed;
}

own_call_counts own_calls_of(const char *command) {
    const own_call_counts *c = find(counted, command);
    return c ? *c : (own_call_counts){0};
}

void own_calls_forget(void) {
    own_call_counts *c;
    if (!counted) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(counted, "^", NULL, 0);
    while (RedisModule_DictNextC(it, NULL, (void **)&c)) *c = (own_call_counts){0};
    RedisModule_DictIteratorStop(it);
}

uint64_t own_calls_ended(void) {
    return ended;
}

/* ---- calling --------------------------------------------------------------------------------- */

const char *own_call_begin(const char *command) {
    call *c = call_at(open++);
    c->command = command;
    return c->coming = own_call_name(container_of(c, command));
}

RedisModuleCallReply *own_call_end(RedisModuleCallReply *reply) {
    open--;
    if (!reply) return NULL;
    ended++;
    if (open < DEEPEST)
        count(calls[open].command, RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_ERROR);
    return reply;
}

bool own_call_told(RedisModuleCallReply *reply, const char *text) {
    size_t len;
    const char *told = reply ? RedisModule_CallReplyStringPtr(reply, &len) : NULL;
    return told && len == strlen(text) && !memcmp(told, text, len);
}

void own_call_drop(RedisModuleCallReply *reply) {
    if (reply) RedisModule_FreeCallReply(reply);
}

bool own_call_open(void) {
    return open > 0;
}

bool own_call_comes(const RedisModuleString *name) {
    if (open == 0) return false;
    if (open > DEEPEST) return true;
    const char **last = &calls[open - 1].coming;
    if (!*last || strcasecmp(RedisModule_StringPtrLen(name, NULL), *last)) return false;
    *last = NULL;
    return true;
}

void own_call_unseen(void) {
    for (int i = 0; i < open && i < DEEPEST; i++) calls[i].coming = NULL;
}
