/* page_sane.c: every invariant of a page, for bytes that come from outside. */
#include "map/page_inside.h"

#include <string.h>

static bool single_sane(const uint8_t *payload, uint32_t len, uint8_t flags) {
    if (len == 0) return false;
    return payload[0] == PAGE_LARGE ? flags & PAGE_LARGES && len == PAGE_LARGE_BYTES
                                    : 1u + payload[0] <= len;
}

static bool slots_sane(const page *p) {
    const uint8_t *tags = page_tags(p), *payload = block_end(p);
    bool in_group = false, seen[PAGE_TAG_SINGLE] = {false};
    for (uint32_t i = 0; i < p->slots; i++) {
        uint32_t len = page_len(p, i);
        payload -= len;
        if (len > PAGE_PAYLOAD_MAX) return false;
        if (page_is_head(tags[i])) {
            if (i + 1u == p->slots || !page_is_member(tags[i + 1])) return false;
            if (len > PAGE_KEY_MAX) return false;
            memset(seen, 0, sizeof seen);
            in_group = true;
        } else if (page_is_member(tags[i])) {
            if (!in_group || seen[tags[i]]) return false;
            seen[tags[i]] = true;
        } else {
            if (!single_sane(payload, len, p->flags)) return false;
            in_group = false;
        }
    }
    return true;
}

bool page_sane(const page *p, size_t bytes) {
    if (bytes < PAGE_HEADER_BYTES || p->cap > bytes || p->cap > PAGE_BYTES) return false;
    if (p->used > p->cap || p->used < PAGE_HEADER_BYTES) return false;
    if (p->flags & ~(PAGE_WIDE | PAGE_EXPIRY | PAGE_LARGES | PAGE_USES | PAGE_FAST)) return false;
    uint32_t least = PAGE_HEADER_BYTES + p->slots * (1 + len_bytes(p));
    if (p->flags & PAGE_EXPIRY) least += PAGE_BASE_BYTES;
    if (p->flags & PAGE_USES) least += uses_bytes(p->slots);
    if (least > p->used) return false;
    least = PAGE_HEADER_BYTES + array_bytes(p);
    if (least > p->used || payload_before(p, p->slots) != p->used - least) return false;
    return slots_sane(p);
}
