/* map_sane.c: every invariant of a map and its pages. */
#include "map/map_inside.h"
#include "map/map_uncounted.h"

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
    size_t bytes = l ? c->m->shared->mem->usable(l) : 0;
    c->found.large += l != NULL;
    c->found.large_bytes += bytes;
    c->found.young += l && l->young;
    c->found.young_bytes += l && l->young ? bytes : 0;
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

/* The young records are a list that can be walked both ways. */
static bool list_sane(const map *m) {
    uint64_t count = 0;
    bool to_encode = m->to_encode == NULL;
    large *older = NULL;
    for (large *l = m->oldest; l; older = l, l = large_tail(l)->newer, count++) {
        if (!l->young || large_tail(l)->older != older || count == m->totals.young) return false;
        to_encode |= l == m->to_encode;
    }
    return to_encode && m->newest == older && count == m->totals.young;
}

bool map_sane(map *m) {
    checking c = {.m = m, .sane = true};
    uncounted_count_out(m->shared);
    for (uint32_t i = 0; i < m->buckets; i++) {
        if (!pages_sane(m, i, &c.found)) return false;
        if (!map_each(m, i, check_record, &c)) return false;
    }
    return c.sane && list_sane(m) && !memcmp(&c.found, &m->totals, sizeof c.found);
}
