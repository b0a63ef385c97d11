/* page_inside.h: where things lie in a page, for the files that change and check it. */
#ifndef CKV_PAGE_INSIDE_H
#define CKV_PAGE_INSIDE_H

#include "map/page.h"

#define USES_BITS     2
#define USES_PER_BYTE (8 / USES_BITS)

static inline uint32_t len_bytes(const page *p) {
    return p->flags & PAGE_WIDE ? 2 : 1;
}
static inline uint8_t *lens(const page *p) {
    return page_tags(p) + p->slots;
}
static inline uint8_t *block_end(const page *p) {
    return (uint8_t *)p + p->cap;
}

/* Payload bytes of the slots before `slot`. */
static inline uint32_t payload_before(const page *p, uint32_t slot) {
    uint32_t sum = 0;
    const uint8_t *l = lens(p);
    if (p->flags & PAGE_WIDE) {
        for (uint32_t i = 0; i < slot; i++) sum += (uint32_t)(l[2 * i] | l[2 * i + 1] << 8);
    } else {
        for (uint32_t i = 0; i < slot; i++) sum += l[i];
    }
    return sum;
}

static inline uint32_t uses_bytes(uint32_t slots) {
    return (slots + USES_PER_BYTE - 1) / USES_PER_BYTE;
}

/* Bytes of the arrays before `uses`, without the base. */
static inline uint32_t bytes_before_uses(const page *p) {
    uint32_t bytes = p->slots * (1 + len_bytes(p));
    if (p->flags & PAGE_EXPIRY) bytes += 2 * page_records(p);
    return bytes;
}

static inline uint32_t array_bytes(const page *p) {
    uint32_t bytes = bytes_before_uses(p);
    if (p->flags & PAGE_EXPIRY) bytes += PAGE_BASE_BYTES;
    if (p->flags & PAGE_USES) bytes += uses_bytes(p->slots);
    return bytes;
}

#endif
