/* reply.c: see reply.h. */
#include "reply.h"

#include "common/common.h"
#include "printable.h"

#include <stdbool.h>
#include <string.h>

static void check(bool right, const char *command, const char *what) {
    if (!right) fail(1, "%s: the server did not answer with %s", command, what);
}

const char *reply_text(const redisReply *reply, const char *command, size_t most) {
    bool text = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
    check(text, command, "a text");
    check(reply->len <= most, command, "a text of the length that was asked for");
    return reply->str;
}

long long reply_number(const redisReply *reply, const char *command, long long most) {
    check(reply->type == REDIS_REPLY_INTEGER, command, "a number");
    check(reply->integer <= most, command, "a number that can be right");
    return reply->integer;
}

size_t reply_list(const redisReply *reply, const char *command, size_t most) {
    check(reply->type == REDIS_REPLY_ARRAY, command, "a list");
    check(reply->elements <= most, command, "a list of the length that was asked for");
    return reply->elements;
}

static bool begins(const redisReply *error, const char *with) {
    return strncmp(error->str, with, strlen(with)) == 0;
}

void reply_refused(const redisReply *error, const char *command) {
    const char *said = printable(error->str, error->len);
    if (begins(error, "NOAUTH"))
        fail(1, "the server wants a password (-a, or REDISCLI_AUTH): %s", said);
    if (begins(error, "NOPERM"))
        fail(1, "the user may not run %s (--help names the rights it needs): %s", command, said);
    fail(1, "%s: the server answered: %s", command, said);
}
