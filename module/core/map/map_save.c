/* map_save.c: a map's pages as bytes for a file. See map_save.h. */
#include "map/map_save.h"

#include "map/map_inside.h"

#include <string.h>

#define COUNT_BYTES 2

size_t map_bucket_size(map *m, uint32_t index) {
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    size_t bytes = COUNT_BYTES;
    for (uint32_t i = 0; i < n; i++) bytes += pages[i]->used;
    return bytes;
}

/* Calls `each` with every pointer to a large record, writing back what it leaves there. */
static bool each_large(page *p, map_large_visitor *each, void *context) {
    for (uint32_t slot = 0; p->flags & PAGE_LARGES && slot < p->slots; slot++) {
        uint8_t tag = page_tags(p)[slot], *payload = page_payload(p, slot);
        if (page_is_member(tag) || page_is_head(tag) || payload[0] != PAGE_LARGE) continue;
        large *l;
        memcpy(&l, payload + 1, sizeof l);
        bool more = each(context, &l);
        memcpy(payload + 1, &l, sizeof l);
        if (!more) return false;
    }
    return true;
}

/* Clears the pointers in a copy of a page that ends at `end`. */
static void forget_pointers(const page *p, uint8_t *end) {
    for (uint32_t slot = 0; p->flags & PAGE_LARGES && slot < p->slots; slot++) {
        if (!page_large(p, slot)) continue;
        size_t from_end = (size_t)((const uint8_t *)p + p->cap - page_payload(p, slot));
        const large *none = NULL;
        memcpy(end - from_end + 1, &none, sizeof none);
    }
}

size_t map_bucket_save(map *m, uint32_t index, uint8_t *dst) {
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    uint8_t *at = dst;
    *at++ = (uint8_t)n;
    *at++ = (uint8_t)(n >> 8);
    for (uint32_t i = 0; i < n; i++) {
        page *p = pages[i];
        uint32_t front = page_front_bytes(p);
        memcpy(at, p, front);
        memcpy(at + front, (uint8_t *)p + p->cap - (p->used - front), p->used - front);
        memcpy(at, &p->used, sizeof p->used); /* cap = used */
        at += p->used;
        forget_pointers(p, at);
    }
    return (size_t)(at - dst);
}

/* Adds up what the pages of a loaded map hold; raw bytes are the saver's to say. */
static void count_page(map *m, const page *p) {
    m->totals.pages++;
    m->totals.page_bytes += p->cap;
    for (uint32_t slot = 0; slot < p->slots; slot++) {
        if (page_is_head(page_tags(p)[slot])) continue;
        m->totals.records++;
        m->totals.expiring += page_code(p, slot) != EXPIRY_NONE;
    }
}

static bool forget_pointer(void *context, large **l) {
    (void)context;
    *l = NULL;
    return true;
}

static bool load_page(map *m, bucket *b, const uint8_t *src, size_t used, uint8_t place) {
    const mem *mem = m->codecs->mem;
    uint32_t cap = map_page_cap((uint32_t)used);
    page *p = mem->alloc(cap);
    if (!p) return false;
    memcpy(p, src, used);
    if (!page_sane(p, used) || p->slots == 0) {
        mem->free(p);
        return false;
    }
    p->codec = place;
    each_large(p, forget_pointer, NULL);
    page_set_cap(p, cap);
    if (!bucket_add(mem, b, p)) {
        mem->free(p);
        return false;
    }
    count_page(m, p);
    return true;
}

size_t map_bucket_load(map *m, uint32_t index, const uint8_t *src, size_t n,
                       const uint8_t places[256]) {
    if (n < COUNT_BYTES || (index > 0 && !map_add_bucket(m))) return 0;
    uint32_t pages = (uint32_t)(src[0] | src[1] << 8);
    size_t at = COUNT_BYTES;
    for (uint32_t i = 0; i < pages; i++) {
        page header;
        if (n - at < PAGE_HEADER_BYTES) return 0;
        memcpy(&header, src + at, PAGE_HEADER_BYTES);
        uint8_t place = places[header.codec];
        if (header.cap != header.used || header.used > n - at || place == MAP_SAVE_NO_PLACE)
            return 0;
        if (header.used < PAGE_HEADER_BYTES || header.used > PAGE_BYTES) return 0;
        if (!load_page(m, map_bucket(m, index), src + at, header.used, place)) return 0;
        at += header.used;
    }
    return at;
}

bool map_each_large(map *m, uint32_t index, map_large_visitor *each, void *context) {
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    for (uint32_t i = 0; i < n; i++)
        if (!each_large(pages[i], each, context)) return false;
    return true;
}

large *map_large_load(map *m, const uint8_t *src, size_t n) {
    uint32_t key_len;
    if (n < sizeof key_len) return NULL;
    memcpy(&key_len, src, sizeof key_len);
    if (key_len > n - sizeof key_len || n > UINT32_MAX) return NULL;
    size_t value_len = n - sizeof key_len - key_len;
    map_key k = {.key = src + sizeof key_len, .len = key_len};
    large *l = map_large_new(m, &k, k.key + key_len, value_len);
    if (!l) return NULL;
    m->totals.large++;
    m->totals.large_bytes += m->codecs->mem->usable(l);
    return l;
}
