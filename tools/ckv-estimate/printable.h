/* printable.h: texts of others, which a terminal, a page or JSON may show. */
#ifndef ESTIMATE_PRINTABLE_H
#define ESTIMATE_PRINTABLE_H

#include <stddef.h>

/* A copy of a text, UTF-8 without controls; \xNN for what is none, as redis-cli does it. The caller
 * frees it. */
char *printable(const char *text, size_t len);

#endif
