/* ckv.c: the state that the Redis side shares, and its log. See ckv.h. */
#include "ckv.h"

#include <stdarg.h>
#include <stdio.h>

ckv_state ckv;

void ckv_log(const char *level, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    RedisModule_Log(NULL, level, "%s: %s", CKV_NAME, text);
}
