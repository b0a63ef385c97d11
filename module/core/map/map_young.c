/* map_young.c: the young records of one map, the oldest first. See map_settle.h. */
#include "map/map_inside.h"

#include <string.h>

/* A block that is used again for another value is filled by at least this share. */
#define FILLED(bytes) ((bytes) / 4 * 3)

/* ---- the ring of maps ------------------------------------------------------------------------ */

static void map_young_join(map *m) {
    young_state *s = &m->shared->young;
    if (!m->group || m->ring_after || !m->to_encode) return;
    map *first = s->ring ? s->ring : m, *last = s->ring ? s->ring->ring_before : m;
    m->ring_after = first;
    m->ring_before = last;
    first->ring_before = last->ring_after = m;
    s->ring = first;
    s->maps++;
}

void map_young_part(map *m) {
    young_state *s = &m->shared->young;
    if (!m->ring_after) return;
    m->ring_before->ring_after = m->ring_after;
    m->ring_after->ring_before = m->ring_before;
    if (s->ring == m) s->ring = m->ring_after == m ? NULL : m->ring_after;
    m->ring_before = m->ring_after = NULL;
    s->maps--;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void append(map *m, large *l) {
    young_tail *tail = large_tail(l);
    tail->older = m->newest;
    tail->newer = NULL;
    *(m->newest ? &large_tail(m->newest)->newer : &m->oldest) = l;
    m->newest = l;
    if (!m->to_encode) m->to_encode = l;
    map_young_join(m);
}

static void take_from_list(map *m, large *l) {
    const young_tail *tail = large_tail(l);
    if (m->to_encode == l) m->to_encode = tail->newer;
    *(tail->older ? &large_tail(tail->older)->newer : &m->oldest) = tail->newer;
    *(tail->newer ? &large_tail(tail->newer)->older : &m->newest) = tail->older;
}

void map_young_enter(map *m, large *l, size_t bytes) {
    m->totals.young++;
    m->totals.young_bytes += bytes;
    append(m, l);
}

void map_young_leave(map *m, large *l, size_t bytes) {
    m->totals.young--;
    m->shared->young.left++;
    m->totals.young_bytes -= bytes;
    take_from_list(m, l);
}

void map_young_moved(map *m, const large *before, large *now, size_t grown) {
    const young_tail *tail = large_tail(now);
    m->totals.young_bytes += grown;
    if (m->to_encode == before) m->to_encode = now;
    *(tail->older ? &large_tail(tail->older)->newer : &m->oldest) = now;
    *(tail->newer ? &large_tail(tail->newer)->older : &m->newest) = now;
}

void map_young_again(map *m, large *l, uint64_t since) {
    take_from_list(m, l);
    large_tail(l)->since = since;
    large_tail(l)->touched = false;
    append(m, l);
}

void map_young_restart(map *m) {
    m->to_encode = m->oldest;
    map_young_join(m);
}

/* ---- one record ------------------------------------------------------------------------------ */

/* Its value, and all of its tail but the links. */
static void fill(young_state *s, large *l, const uint8_t *value, size_t n, young_tail tail) {
    l->value_len = (uint32_t)n + 1;
    memmove(large_value(l) + 1, value, n);
    *large_value(l) = CODEC_RAW_BYTE;
    tail.number = ++s->last_number;
    *large_tail(l) = tail;
}

large *map_young_new(const map *m, const map_key *k, const uint8_t *value, size_t n,
                     uint64_t base) {
    size_t bytes = large_tail_at(k->len, n + 1) + sizeof(young_tail);
    large *l = m->shared->mem->alloc(bytes);
    if (!l) return NULL;
    l->key_len = (uint32_t)k->len & 0x7fffffff;
    l->young = true;
    memcpy(l->bytes, k->key, k->len);
    fill(&m->shared->young, l, value, n, (young_tail){.since = base, .moved = base == 0});
    return l;
}

bool map_young_fits(const map *m, large *l, size_t n) {
    size_t room = m->shared->mem->usable(l);
    size_t bytes = large_tail_at(l->key_len, n + 1) + sizeof(young_tail);
    return bytes <= room && bytes >= FILLED(room);
}

void map_young_rewrite(map *m, large *l, const uint8_t *value, size_t n) {
    young_tail tail = *large_tail(l);
    tail.touched = true;
    tail.moved = false;
    fill(&m->shared->young, l, value, n, tail);
    m->shared->young.spared++;
}
