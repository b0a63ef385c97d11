/* reply.c: errors in the server's words, and arguments. See reply.h. */
#include "server/reply.h"

#include "ckv.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int reply_error(RedisModuleCtx *ctx, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t room = (size_t)vsnprintf(NULL, 0, format, arguments) + 1;
    char *text = RedisModule_Alloc(room);
    vsnprintf(text, room, format, again);
    va_end(again);
    va_end(arguments);
    RedisModule_ReplyWithError(ctx, text);
    RedisModule_Free(text);
    return REDISMODULE_OK;
}

int reply_unknown_command(RedisModuleCtx *ctx) {
    return reply_error(ctx, "ERR unknown command '%s'", RedisModule_GetCurrentCommandName(ctx));
}

int reply_invalid_expire(RedisModuleCtx *ctx, RedisModuleString *command) {
    char name[32];
    size_t len, i;
    const char *given = RedisModule_StringPtrLen(command, &len);
    const char *own = ckv_stands_for(given, len);
    if (own) {
        len -= (size_t)(own - given);
        given = own;
    }
    for (i = 0; i < len && i + 1 < sizeof name; i++)
        name[i] = (char)tolower((unsigned char)given[i]);
    name[i] = 0;
    return reply_error(ctx, "ERR invalid expire time in '%s' command", name);
}

int arg_is(RedisModuleString *arg, const char *word) {
    size_t len;
    const char *given = RedisModule_StringPtrLen(arg, &len);
    return len == strlen(word) && !strncasecmp(given, word, len);
}
