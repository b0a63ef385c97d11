/* own_call.c: commands of the server that this module calls itself. See own_call.h. */
#include "server/own_call.h"

#include <stddef.h>
#include <strings.h>

/* One within another, as who is told of one may send us another, and a filter that is asked before
 * ours as well. Deeper ones are not told apart. */
#define DEEPEST 16

static const char *coming[DEEPEST]; /* names; NULL: the filter has been asked about it */
static int open;
static uint64_t ended;

const char *own_call_begin(const char *name) {
    if (open < DEEPEST) coming[open] = name;
    open++;
    return name;
}

RedisModuleCallReply *own_call_end(RedisModuleCallReply *reply) {
    open--;
    ended += reply != NULL;
    return reply;
}

uint64_t own_calls_ended(void) {
    return ended;
}

bool own_call_open(void) {
    return open > 0;
}

bool own_call_comes(const RedisModuleString *name) {
    if (open == 0) return false;
    if (open > DEEPEST) return true;
    const char **last = &coming[open - 1];
    if (!*last || strcasecmp(RedisModule_StringPtrLen(name, NULL), *last)) return false;
    *last = NULL;
    return true;
}

void own_call_unseen(void) {
    for (int i = 0; i < open && i < DEEPEST; i++) coming[i] = NULL;
}
