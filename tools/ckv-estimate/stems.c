/* stems.c: see stems.h. */
#include "stems.h"

#include "base/siphash.h"
#include "common/common.h"

#include <stdlib.h>
#include <string.h>

typedef struct stem {
    const char *bytes; /* NULL: none */
    size_t len;
} stem;

struct stems {
    size_t size;
    stem *table; /* open addressing, at most half full */
};

stems *stems_new(size_t most) {
    stems *s = allocate(sizeof *s);
    s->size = 2 * most + 1;
    s->table = allocate(s->size * sizeof *s->table);
    return s;
}

void stems_free(stems *s) {
    free(s->table);
    free(s);
}

bool stems_add(stems *s, const char *bytes, size_t len) {
    static const uint64_t secret[2] = {5, 6};
    size_t at = siphash13(bytes, len, secret) % s->size;
    for (; s->table[at].bytes; at = (at + 1) % s->size)
        if (s->table[at].len == len && !memcmp(s->table[at].bytes, bytes, len)) return false;
    s->table[at] = (stem){bytes, len};
    return true;
}
