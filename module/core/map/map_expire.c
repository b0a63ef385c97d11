/* map_expire.c: taking out what has expired. See map_expire.h. */
#include "map/map_expire.h"

#include "map/map_inside.h"

static void delete_one(map *m, const map_pos *pos, const uint8_t *key, size_t len,
                       uint64_t now_ticks, map_gone *told, void *context) {
    map_key k = {.key = key, .len = len};
    told(context, key, len);
    map_delete(m, &k, pos, now_ticks);
}

uint32_t map_expire(map *m, uint32_t bucket_index, int64_t now_ms, uint32_t limit, map_gone *told,
                    void *context) {
    uint8_t bytes[MAP_KEY_ROOM];
    uint32_t n, deleted = 0, index = 0, slot = 0;
    uint64_t large_bytes = m->totals.large_bytes;
    while (deleted < limit && bucket_index < m->buckets) {
        if (large_bytes - m->totals.large_bytes >= MAP_EXPIRE_BYTES) break;
        page **pages = bucket_pages(map_bucket(m, bucket_index), &n);
        if (index >= n) break;
        page *p = pages[index];
        slot = page_next_expired(p, slot, now_ms);
        const uint8_t *key;
        size_t len;
        if (slot == p->slots) {
            index++;
            slot = 0;
        } else if (!(key = map_key_of_slot(m, p, slot, bytes, &len))) {
            slot++;
        } else {
            map_pos pos = {.p = p, .slot = slot, .page_index = index, .bucket_index = bucket_index};
            delete_one(m, &pos, key, len, expiry_ticks(now_ms), told, context);
            deleted++;
            /* The bucket may have been written anew. */
            index = slot = 0;
        }
    }
    return deleted;
}

uint64_t map_expired(map *m, int64_t now_ms) {
    uint64_t expired = 0;
    for (uint32_t i = 0; i < m->buckets && m->totals.expiring > 0; i++) {
        uint32_t n;
        page **pages = bucket_pages(map_bucket(m, i), &n);
        for (uint32_t k = 0; k < n; k++) {
            const page *p = pages[k];
            uint32_t slot = page_next_expired(p, 0, now_ms);
            for (; slot < p->slots; slot = page_next_expired(p, slot + 1, now_ms)) expired++;
        }
    }
    return expired;
}
