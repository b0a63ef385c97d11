/* map_pages.c: the blocks that a map is made of: its directory, and the pages of its buckets. */
#include "map/map_inside.h"

#include <string.h>

#define FIRST_BUCKETS 1
#define PAGE_CAP_MIN  64
/* A page is shrunk when that gives back a quarter of it: rarely enough to be cheap. */
#define WORTH_TRIMMING(cap, wanted) ((wanted)*4 <= (cap)*3)

/* ---- making and freeing ---------------------------------------------------------------------- */

map *map_new(map_shared *shared, const uint64_t secret[2]) {
    const mem *mem = shared->mem;
    map *m = mem->alloc(sizeof *m);
    if (!m) return NULL;
    *m = (map){.shared = shared, .secret = {secret[0], secret[1]}, .buckets = FIRST_BUCKETS};
    m->first = mem->alloc(FIRST_BUCKETS * sizeof *m->first);
    if (!m->first) {
        mem->free(m);
        return NULL;
    }
    memset(m->first, 0, FIRST_BUCKETS * sizeof *m->first);
    return m;
}

static void free_bucket(const map *m, bucket *b) {
    const mem *mem = m->shared->mem;
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) {
        large *l;
        for (page_walk at = page_walk_start(pages[i]); page_next_large(&at, &l);)
            if (l) mem->free(l);
        codecs_note_page_gone(&m->shared->codecs, pages[i]->codec);
        mem->free(pages[i]);
    }
    bucket_clear(mem, b);
}

void map_free(map *m) {
    const mem *mem = m->shared->mem;
    for (uint32_t i = 0; i < m->buckets; i++) free_bucket(m, map_bucket(m, i));
    for (uint32_t i = MAP_SEGMENT; i < m->buckets; i += MAP_SEGMENT)
        mem->free(m->segments[i / MAP_SEGMENT - 1]);
    if (m->segments) mem->free(m->segments);
    mem->free(m->first);
    mem->free(m);
}

size_t map_bytes(const map *m) {
    const mem *mem = m->shared->mem;
    size_t bytes = mem->usable((void *)m) + mem->usable(m->first) + m->totals.page_bytes +
                   m->totals.large_bytes;
    if (m->segments) bytes += mem->usable(m->segments);
    for (uint32_t i = 0; i < m->buckets; i++) {
        if (i > 0 && i % MAP_SEGMENT == 0) bytes += mem->usable(m->segments[i / MAP_SEGMENT - 1]);
        bytes += bucket_bytes(mem, map_bucket(m, i));
    }
    return bytes;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* The first segment gets room for so many buckets and a quarter more: the size classes stand four
 * to a doubling. False: out of memory. */
static bool resize_first(map *m, uint32_t buckets) {
    size_t wanted = buckets + (buckets - 1) / 4;
    if (wanted > MAP_SEGMENT) wanted = MAP_SEGMENT;
    bucket *moved = m->shared->mem->realloc(m->first, wanted * sizeof *moved);
    if (moved) m->first = moved;
    return moved != NULL;
}

/* How many buckets it has room for. */
static size_t first_room(const map *m) {
    return m->shared->mem->usable(m->first) / sizeof(bucket);
}

static bool add_segment(map *m, uint32_t number) {
    const mem *mem = m->shared->mem;
    bucket **segments = mem->realloc(m->segments, (number + 1) * sizeof *segments);
    if (!segments) return false;
    m->segments = segments;
    return (segments[number] = mem->alloc(MAP_SEGMENT * sizeof(bucket))) != NULL;
}

bool map_add_bucket(map *m) {
    uint32_t index = m->buckets;
    bool room = index >= MAP_SEGMENT
                    ? index % MAP_SEGMENT > 0 || add_segment(m, index / MAP_SEGMENT - 1)
                    : index < first_room(m) || resize_first(m, index + 1);
    if (!room) return false;
    m->buckets++;
    *map_bucket(m, index) = (bucket){{NULL}};
    return true;
}

void map_drop_bucket(map *m) {
    uint32_t index = --m->buckets;
    if (index >= MAP_SEGMENT && index % MAP_SEGMENT == 0)
        m->shared->mem->free(m->segments[index / MAP_SEGMENT - 1]);
    /* While values are young there are several times as many as are left in the end. */
    if (m->buckets < first_room(m) / 2) resize_first(m, m->buckets);
}

/* ---- pages ----------------------------------------------------------------------------------- */

uint32_t map_page_cap(uint32_t bytes) {
    if (bytes <= PAGE_CAP_MIN) return PAGE_CAP_MIN;
    uint32_t step = (uint32_t)mem_class_step(bytes - 1);
    uint32_t cap = (bytes + step - 1) & ~(step - 1);
    return cap > PAGE_CAP_LAST && cap < PAGE_BYTES ? PAGE_BYTES : cap;
}

/* Moves a page to a block of `cap` bytes; false when out of memory. */
static bool resize_page(map *m, page **at, uint32_t cap) {
    page *p = *at;
    uint32_t old = p->cap;
    if (cap < old) page_set_cap(p, cap);
    page *moved = m->shared->mem->realloc(p, cap);
    if (!moved) {
        if (cap < old) page_set_cap(p, old);
        return false;
    }
    if (cap > old) page_set_cap(moved, cap);
    *at = moved;
    m->totals.page_bytes += cap;
    m->totals.page_bytes -= old;
    return true;
}

bool map_make_room(map *m, page **at, int grown) {
    int wanted = (*at)->used + grown;
    return wanted <= (*at)->cap || resize_page(m, at, map_page_cap((uint32_t)wanted));
}

void map_trim_page(map *m, page **at) {
    uint32_t wanted = map_page_cap((*at)->used);
    if (WORTH_TRIMMING((*at)->cap, wanted)) resize_page(m, at, wanted);
}

void map_trim_bucket(map *m, bucket *b) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t wanted = map_page_cap(pages[i]->used);
        if (wanted < pages[i]->cap) resize_page(m, &pages[i], wanted);
    }
}

uint8_t map_page_flags(const map *m) {
    return m->shared->count_uses ? PAGE_USES : 0;
}

static void count_page(map *m, const page *p) {
    codecs_note_page(&m->shared->codecs, p->codec);
    m->totals.pages++;
    m->totals.page_bytes += p->cap;
}

bool map_take_page(map *m, bucket *b, page *p) {
    bool taken = bucket_add(m->shared->mem, b, p);
    if (taken) count_page(m, p);
    return taken;
}

page **map_add_page(map *m, bucket *b, uint8_t codec, uint32_t bytes) {
    uint32_t cap = map_page_cap(bytes), n;
    page *p = m->shared->mem->alloc(cap);
    if (!p) return NULL;
    page_init(p, cap, codec);
    p->flags = map_page_flags(m);
    if (!map_take_page(m, b, p)) {
        m->shared->mem->free(p);
        return NULL;
    }
    return bucket_pages(b, &n) + n - 1;
}

void map_drop_page(map *m, page *p, mem_retired *old) {
    m->totals.pages--;
    m->totals.page_bytes -= p->cap;
    codecs_note_page_gone(&m->shared->codecs, p->codec);
    if (old)
        mem_retire(m->shared->mem, old, p);
    else
        m->shared->mem->free(p);
}

void map_replace_page(map *m, page **at, page *by, mem_retired *old) {
    map_drop_page(m, *at, old);
    *at = by;
    count_page(m, by);
}

void map_remove_page(map *m, bucket *b, uint32_t index, mem_retired *old) {
    uint32_t n;
    page *p = bucket_pages(b, &n)[index];
    bucket_remove(m->shared->mem, b, index);
    map_drop_page(m, p, old);
}

/* ---- large records --------------------------------------------------------------------------- */

void map_count_large(map *m, large *l) {
    size_t bytes = m->shared->mem->usable(l);
    m->totals.large++;
    m->totals.large_bytes += bytes;
    if (l->young) map_young_enter(m, l, bytes);
}

void map_free_large(map *m, large *l) {
    size_t bytes = m->shared->mem->usable(l);
    if (l->young) map_young_leave(m, l, bytes);
    m->totals.large--;
    m->totals.large_bytes -= bytes;
    m->shared->mem->free(l);
}

/* ---- going over a bucket --------------------------------------------------------------------- */

uint64_t map_bucket_records(const map *m, uint32_t index) {
    uint32_t n;
    uint64_t records = 0;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    for (uint32_t i = 0; i < n; i++) records += page_records(pages[i]);
    return records;
}

bool map_each_large(map *m, uint32_t index, map_large_visitor *each, void *context) {
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    for (uint32_t i = 0; i < n; i++) {
        large *l;
        for (page_walk at = page_walk_start(pages[i]); page_next_large(&at, &l);) {
            const large *before = l;
            bool more = each(context, &l);
            if (l != before) /* a saving child copies what it writes to */
                page_set_large(&at, l, l ? map_tag_of_large(m, l) : PAGE_TAG_SINGLE);
            if (!more) return false;
        }
    }
    return true;
}
