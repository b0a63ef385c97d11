/* reply.c: what the commands' parsers share. */
#include "reply.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int reply_invalid_expire(RedisModuleCtx *ctx, RedisModuleString *command) {
    char text[96], name[32];
    size_t len, i;
    const char *given = RedisModule_StringPtrLen(command, &len);
    for (i = 0; i < len && i + 1 < sizeof name; i++) name[i] = (char)tolower((unsigned char)given[i]);
    name[i] = 0;
    snprintf(text, sizeof text, "ERR invalid expire time in '%s' command", name);
    return RedisModule_ReplyWithError(ctx, text);
}

int arg_is(RedisModuleString *arg, const char *word) {
    size_t len;
    const char *given = RedisModule_StringPtrLen(arg, &len);
    return len == strlen(word) && !strncasecmp(given, word, len);
}
