/* map_save.c: a map's pages as bytes for a file. See map_save.h. */
#include "map/map_save.h"

#include "map/map_inside.h"
#include "map/map_uncounted.h"

#include <stddef.h>
#include <string.h>

#define COUNT_BYTES 2

/* ---- the head -------------------------------------------------------------------------------- */

void map_save_head(const map *m, uint64_t head[MAP_HEAD]) {
    uncounted_count_out(m->shared);
    memcpy(&head[MAP_HEAD_SECRET], m->secret, sizeof m->secret);
    head[MAP_HEAD_BUCKETS] = m->buckets;
    head[MAP_HEAD_KEY_BYTES] = m->totals.key_bytes;
    head[MAP_HEAD_VALUE_BYTES] = m->totals.value_bytes;
}

map *map_load_head(map_shared *shared, const uint64_t head[MAP_HEAD]) {
    uint64_t buckets = head[MAP_HEAD_BUCKETS];
    bool sane = buckets > 0 && buckets <= MAP_BUCKETS_MAX;
    return sane ? map_new(shared, &head[MAP_HEAD_SECRET]) : NULL;
}

void map_load_end(map *m, const uint64_t head[MAP_HEAD]) {
    const map_totals *t = &m->totals;
    m->totals.key_bytes =
        map_at_most(head[MAP_HEAD_KEY_BYTES], t->records * MAP_KEY_MAX + t->large_bytes);
    m->totals.value_bytes =
        map_at_most(head[MAP_HEAD_VALUE_BYTES], t->records * CODEC_ZSTD_MAX + t->large_bytes);
}

/* Members have the shape of their stem, which ends with a digit. */
static void add_shapes_of(map *m, const page *p) {
    uint8_t bytes[MAP_KEY_ROOM];
    size_t stem_len = 0, len;
    for (uint32_t slot = 0; slot < p->slots; slot++) {
        if (page_is_member(page_tags(p)[slot])) continue;
        const large *l = page_large(p, slot);
        if (l)
            key_shapes_add(&m->shared->shapes, l->bytes, l->key_len);
        else if (map_read_key(m, p, slot, bytes, &stem_len, &len))
            key_shapes_add(&m->shared->shapes, bytes, len);
    }
}

void map_add_shapes(map *m) {
    for (uint32_t i = 0; i < m->buckets; i++) {
        uint32_t n;
        page **pages = bucket_pages(map_bucket(m, i), &n);
        for (uint32_t j = 0; j < n; j++) add_shapes_of(m, pages[j]);
    }
}

void map_note_codecs(map *m, bool named[CODECS_MAX]) {
    for (uint32_t i = 0; i < m->buckets; i++) {
        uint32_t n;
        page **pages = bucket_pages(map_bucket(m, i), &n);
        for (uint32_t j = 0; j < n; j++) named[pages[j]->codec] = true;
    }
}

/* ---- buckets --------------------------------------------------------------------------------- */

size_t map_bucket_size(map *m, uint32_t index) {
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    size_t bytes = COUNT_BYTES;
    for (uint32_t i = 0; i < n; i++) bytes += pages[i]->used;
    return bytes;
}

/* Clears the pointers in a copy of a page that ends at `end`. */
static void forget_pointers(page *p, uint8_t *end) {
    large *l;
    for (page_walk at = page_walk_start(p); page_next_large(&at, &l);) {
        size_t from_end = (size_t)((const uint8_t *)p + p->cap - at.payload);
        memset(end - from_end + 1, 0, sizeof l);
    }
}

/* Gives large records the tag that they have in files, in a copy of a page that begins at `begin`.
 */
static void write_file_tags(const map *m, page *p, uint8_t *begin) {
    uint8_t *tags = begin + (page_tags(p) - (const uint8_t *)p), suffix;
    size_t stem_len;
    large *l;
    for (page_walk at = page_walk_start(p); page_next_large(&at, &l);)
        tags[at.slot] = page_single_tag(map_hash_large(m, l, &stem_len, &suffix), STEM_NO_SUFFIX);
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
        at[offsetof(page, flags)] &= (uint8_t)~PAGE_FAST;
        write_file_tags(m, p, at);
        at += p->used;
        forget_pointers(p, at);
    }
    return (size_t)(at - dst);
}

/* Adds up what the pages of a loaded map hold; raw bytes are the saver's to say. */
static void count_page(map *m, page *p) {
    codecs_note_page(&m->shared->codecs, p->codec);
    m->totals.pages++;
    m->totals.page_bytes += p->cap;
    m->totals.records += page_records(p);
    for (page_walk at = page_walk_start(p); page_walk_next(&at);)
        m->totals.expiring += at.code != EXPIRY_NONE;
}

static bool load_page(map *m, bucket *b, const uint8_t *src, size_t used, uint8_t codec) {
    const mem *mem = m->shared->mem;
    uint32_t cap = map_page_cap((uint32_t)used);
    page *p = mem->alloc(cap);
    if (!p) return false;
    memcpy(p, src, used);
    if (!page_sane(p, used) || p->slots == 0 || p->flags & PAGE_FAST) {
        mem->free(p);
        return false;
    }
    p->codec = codec;
    forget_pointers(p, (uint8_t *)p + used);
    page_set_cap(p, cap);
    if (!bucket_add(mem, b, p)) {
        mem->free(p);
        return false;
    }
    count_page(m, p);
    return true;
}

size_t map_bucket_load(map *m, uint32_t index, const uint8_t *src, size_t n,
                       const uint8_t codec_ids[256]) {
    if (n < COUNT_BYTES || (index > 0 && !map_add_bucket(m))) return 0;
    uint32_t pages = (uint32_t)(src[0] | src[1] << 8);
    size_t at = COUNT_BYTES;
    for (uint32_t i = 0; i < pages; i++) {
        page header;
        if (n - at < PAGE_HEADER_BYTES) return 0;
        memcpy(&header, src + at, PAGE_HEADER_BYTES);
        uint8_t codec = codec_ids[header.codec];
        if (header.cap != header.used || header.used > n - at || codec == MAP_SAVE_NO_CODEC)
            return 0;
        if (header.used < PAGE_HEADER_BYTES || header.used > PAGE_BYTES) return 0;
        if (!load_page(m, map_bucket(m, index), src + at, header.used, codec)) return 0;
        at += header.used;
    }
    return at;
}

/* ---- large records --------------------------------------------------------------------------- */

size_t map_large_size(const large *l) {
    return sizeof(uint32_t) + l->key_len + l->value_len;
}

void map_large_save(const large *l, uint8_t *dst) {
    uint32_t key_len = l->key_len;
    memcpy(dst, &key_len, sizeof key_len);
    memcpy(dst + sizeof key_len, l->bytes, key_len + (size_t)l->value_len);
}

large *map_large_load(map *m, const uint8_t *src, size_t n) {
    uint32_t key_len;
    if (n < sizeof key_len) return NULL;
    memcpy(&key_len, src, sizeof key_len);
    if (key_len > n - sizeof key_len || n - sizeof key_len > MAP_RECORD_MAX) return NULL;
    size_t value_len = n - sizeof key_len - key_len;
    map_key k = {.key = src + sizeof key_len, .len = key_len};
    k.hash = map_hash_key(m, k.key, k.len, &k.stem_len, &k.suffix);
    large *l = map_large_loaded(m, &k, k.key + key_len, value_len);
    if (l) map_count_large(m, l);
    return l;
}
