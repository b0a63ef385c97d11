/* printable.c: see printable.h. */
#include "printable.h"

#include "common/common.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character that a text begins with; 0: it begins with none. */
static size_t utf8_len(const unsigned char *text, size_t len) {
    size_t n = text[0] < 0x80   ? 1
               : text[0] < 0xc2 ? 0
               : text[0] < 0xe0 ? 2
               : text[0] < 0xf0 ? 3
                                : 4;
    if (n == 0 || n > len || text[0] > 0xf4) return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    bool surrogate = text[0] == 0xed && text[1] >= 0xa0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool beyond = text[0] == 0xf4 && text[1] >= 0x90;
    return surrogate || overlong || beyond ? 0 : n;
}

/* What a terminal or a page would obey and not show: also controls of C1 (U+0080 to U+009F), ends
 * of lines and directions of writing (U+2028 to U+202E, U+2066 to U+2069). */
static bool is_control(const unsigned char *c, size_t len) {
    if (len == 2) return c[0] == 0xc2 && c[1] < 0xa0;
    if (len == 3)
        return c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) ||
                                (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
    return len == 1 && (*c < ' ' || *c == 0x7f || *c == '\\');
}

char *printable(const char *text, size_t len) {
    char *copy = allocate(4 * len + 1), *to = copy;
    for (size_t i = 0; i < len;) {
        const unsigned char *at = (const unsigned char *)text + i;
        size_t n = utf8_len(at, len - i);
        bool shown = n > 0 && !is_control(at, n);
        if (n == 0) n = 1;
        i += n;
        if (shown) to = mempcpy(to, at, n);
        for (; !shown && n > 0; n--) to += sprintf(to, "\\x%02x", *at++);
    }
    return copy;
}
