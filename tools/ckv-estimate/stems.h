/* stems.h: a set of stems. */
#ifndef ESTIMATE_STEMS_H
#define ESTIMATE_STEMS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stems stems;

/* Of at most `most`, whose bytes are the caller's. */
stems *stems_new(size_t most);
void stems_free(stems *s);

/* False: it is there already. */
bool stems_add(stems *s, const char *stem, size_t len);

#endif
