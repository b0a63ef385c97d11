#include "common/common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void fail(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    flockfile(stderr);
    fprintf(stderr, "%s%s: ", isatty(2) ? "\r\033[K" : "", program_invocation_short_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(status); /* other threads still use what exit() would tear down */
}

void check_printed(void) {
    if (fflush(stdout) != 0 || ferror(stdout)) fail(1, "cannot write the report");
}

void *reallocate(void *block, size_t size) {
    void *p = realloc(block, size);
    if (!p) fail(1, "out of memory");
    return p;
}

void *allocate(size_t size) {
    void *p = calloc(1, size);
    if (!p) fail(1, "out of memory");
    return p;
}
