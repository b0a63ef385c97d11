/* own_call.c: commands of the server that this module calls itself. See own_call.h. */
#include "server/own_call.h"

#include <stddef.h>
#include <string.h>

static int open;           /* one within another, as who is told of one may send us another */
static const char *coming; /* the filter has not been asked about it yet; NULL: none */

const char *own_call_begin(const char *name) {
    open++;
    coming = name;
    return name;
}

RedisModuleCallReply *own_call_end(RedisModuleCallReply *reply) {
    open--;
    coming = NULL;
    return reply;
}

bool own_call_open(void) {
    return open > 0;
}

bool own_call_comes(const RedisModuleString *name) {
    if (!coming || strcmp(RedisModule_StringPtrLen(name, NULL), coming)) return false;
    coming = NULL;
    return true;
}

void own_call_unseen(void) {
    coming = NULL;
}
