/* map_sane.c: every invariant of a map and its pages. */
#include "map/map_inside.h"

#include <string.h>

typedef struct checking {
    map *m;
    map_totals found;
    bool sane;
} checking;

/* The record is where a look-up finds it, and nowhere else. */
static bool check_record(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    checking *c = context;
    map_key k;
    map_pos again;
    map_key_init(c->m, &k, key, key_len);
    large *l = page_large(pos->p, pos->slot);
    size_t len = map_value_len(c->m, pos);
    c->sane = map_find(c->m, &k, &again) && again.p == pos->p && again.slot == pos->slot &&
              len != CODEC_NO_ROOM;
    c->found.records++;
    c->found.expiring += page_code(pos->p, pos->slot) != EXPIRY_NONE;
    c->found.key_bytes += key_len;
    c->found.value_bytes += len;
    c->found.large += l != NULL;
    if (l) c->found.large_bytes += c->m->shared->mem->usable(l);
    return c->sane;
}

static bool pages_sane(map *m, uint32_t index, map_totals *found) {
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    for (uint32_t i = 0; i < n; i++) {
        if (!page_sane(pages[i], pages[i]->cap) || pages[i]->slots == 0) return false;
        if (!codecs_get(&m->shared->codecs, pages[i]->codec)) return false;
        found->pages++;
        found->page_bytes += pages[i]->cap;
    }
    return true;
}

bool map_sane(map *m) {
    checking c = {.m = m, .sane = true};
    for (uint32_t i = 0; i < m->buckets; i++) {
        if (!pages_sane(m, i, &c.found)) return false;
        if (!map_each(m, i, check_record, &c)) return false;
    }
    return c.sane && !memcmp(&c.found, &m->totals, sizeof c.found);
}
