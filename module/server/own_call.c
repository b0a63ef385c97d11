/* own_call.c: commands of the server that this module calls itself. See own_call.h. */
#include "server/own_call.h"

static int open;    /* one within another, as who is told of one may send us another */
static bool coming; /* the next one that the filter is asked about is ours */

const char *own_call_begin(const char *name) {
    open++;
    coming = true;
    return name;
}

RedisModuleCallReply *own_call_end(RedisModuleCallReply *reply) {
    open--;
    coming = false;
    return reply;
}

bool own_call_open(void) {
    return open > 0;
}

bool own_call_comes(void) {
    bool comes = coming;
    coming = false;
    return comes;
}
