/* uri.c: see uri.h. */
#include "uri.h"

#include "common/common.h"

#include <stdlib.h>
#include <string.h>

static int hex(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* A copy, with %XX as the byte that it stands for. */
static const char *decoded(const char *from, size_t len) {
    char *copy = allocate(len + 1), *to = copy;
    for (size_t i = 0; i < len; i++) {
        bool escape =
            from[i] == '%' && i + 2 < len && hex(from[i + 1]) >= 0 && hex(from[i + 2]) >= 0;
        *to++ = escape ? (char)(hex(from[i + 1]) << 4 | hex(from[i + 2])) : from[i];
        if (escape) i += 2;
    }
    return copy;
}

/* Without a colon it is the password. */
static void read_user(const char *text, size_t len, address *to) {
    const char *colon = memchr(text, ':', len);
    const char *password = colon ? colon + 1 : text;
    if (colon && colon > text) to->user = decoded(text, (size_t)(colon - text));
    to->password = decoded(password, len - (size_t)(password - text));
}

/* A number up to the end; false: it is none. */
static bool read_number(const char *text, const char *end, long most, long *number) {
    char *after;
    long read = strtol(text, &after, 10);
    if (text == end || after != end || *text < '0' || *text > '9' || read > most) return false;
    *number = read;
    return true;
}

bool uri_read(const char *text, address *to, long *database) {
    bool tls = strncmp(text, "rediss://", 9) == 0;
    if (!tls && strncmp(text, "redis://", 8) != 0) return false;
    to->tls |= tls;
    text += tls ? 9 : 8;
    const char *end = text + strcspn(text, "/?#");
    const char *at = memrchr(text, '@', (size_t)(end - text));
    if (at) read_user(text, (size_t)(at - text), to);
    if (at) text = at + 1;
    bool bracket = *text == '[';
    const char *host_end = bracket ? memchr(text, ']', (size_t)(end - text)) : NULL;
    if (bracket && !host_end) return false;
    const char *colon =
        memchr(host_end ? host_end : text, ':', (size_t)(end - (host_end ? host_end : text)));
    if (!host_end) host_end = colon ? colon : end;
    text += bracket;
    if (host_end > text) to->host = decoded(text, (size_t)(host_end - text));
    if (colon && !read_number(colon + 1, end, 65535, &to->port)) return false;
    return *end != '/' || end[1] == 0 ||
           read_number(end + 1, end + strlen(end), 1L << 30, database);
}
