/* map_expire.c: taking out what has expired. See map_expire.h. */
#include "map_expire.h"

#include "map_inside.h"

/* The first record at or after `slot` of a page that has expired; the number of slots if none. */
static uint32_t next_expired(const page *p, uint32_t slot, int64_t now_ms) {
    uint64_t base = page_base(p);
    for (; slot < p->slots; slot++) {
        if (page_is_head(page_tags(p)[slot])) continue;
        if (expiry_ms(page_code(p, slot), base) <= now_ms) break;
    }
    return slot;
}

/* The key of a record into bytes; false: damaged. */
static bool read_key(const map *m, const page *p, uint32_t slot, uint8_t *bytes, size_t *len) {
    size_t stem_len = 0;
    if (page_is_member(page_tags(p)[slot])) {
        uint32_t head = slot;
        while (!page_is_head(page_tags(p)[head])) head--;
        map_read_key(m, p, head, bytes, &stem_len, len);
    }
    return map_read_key(m, p, slot, bytes, &stem_len, len);
}

static void delete_one(map *m, const map_pos *pos, const uint8_t *bytes, size_t len,
                       uint64_t now_ticks, map_expired *told, void *context) {
    const large *l = page_large(pos->p, pos->slot);
    map_key k = {.key = l ? l->bytes : bytes, .len = l ? l->key_len : len};
    told(context, k.key, k.len);
    map_delete(m, &k, pos, now_ticks);
}

uint32_t map_expire(map *m, uint32_t bucket_index, int64_t now_ms, uint32_t limit,
                    map_expired *told, void *context) {
    uint8_t bytes[MAP_KEY_ROOM];
    uint32_t n, deleted = 0, index = 0, slot = 0;
    while (deleted < limit && bucket_index < m->buckets) {
        page **pages = bucket_pages(map_bucket(m, bucket_index), &n);
        if (index >= n) break;
        page *p = pages[index];
        slot = p->flags & PAGE_EXPIRY ? next_expired(p, slot, now_ms) : p->slots;
        size_t len = 0;
        if (slot == p->slots) {
            index++;
            slot = 0;
        } else if (!page_large(p, slot) && !read_key(m, p, slot, bytes, &len)) {
            slot++;
        } else {
            map_pos pos = {p, slot, index, bucket_index};
            delete_one(m, &pos, bytes, len, expiry_ticks(now_ms), told, context);
            deleted++;
            /* The bucket may have been written anew. */
            index = slot = 0;
        }
    }
    return deleted;
}
