/*
 * map_rebuild.c: everything that moves more than one record.
 *
 * rebuild() takes the pages of one or two buckets and pours their records into new pages of one
 * or two buckets, written with the current codec and with the groups of a stem together. A split,
 * a merge, a compaction and a re-encoding differ only in which buckets these are:
 *
 *      split        b        -> b, last + 1
 *      merge        b, last  -> b
 *      compaction   b        -> b
 *      re-encoding  b        -> b
 *
 * The old pages are freed only when the new ones are complete, so running out of memory leaves
 * things as they were.
 */
#include "map/map_inside.h"
#include "base/siphash.h"
#include "base/stem.h"

#include <string.h>

/* Fewer bytes of pages a bucket than this share of MAP_BUCKET_BYTES: two are merged. */
#define MERGE_SHARE(bytes) ((bytes)*2 / 5)
/* The same while all is written anew, which mostly takes less room than before. */
#define SPARSE_SHARE(bytes) ((bytes)*3 / 4)
#define MERGES_AT_A_TIME    2

typedef struct pouring {
    map *m;
    uint32_t index[2]; /* where out[] will stand; equal if there is one only */
    uint32_t buckets;  /* of the map afterwards */
    uint64_t now_ticks;
    mem_retired *old; /* where the old pages go; NULL: they are freed at once */
    bucket out[2];
} pouring;

/* ---- pouring one page ------------------------------------------------------------------------ */

/* Sets k to the key in `bytes`; what the page has encoded already is not encoded again. */
static void key_of_slot(const map *m, const page *p, uint32_t slot, const uint8_t *bytes,
                        size_t stem_len, map_key *k) {
    *k = (map_key){.key = bytes, .len = stem_len, .stem_len = stem_len, .suffix = STEM_NO_SUFFIX};
    k->hash = siphash13(bytes, stem_len, m->secret);
    k->encoded[0].place = k->encoded[1].place = -1;
    if (p->codec != m->codecs->current) return;
    bool head = page_is_head(page_tags(p)[slot]);
    const uint8_t *payload = page_payload(p, slot);
    uint8_t len = head ? (uint8_t)page_len(p, slot) : *payload++;
    memcpy(k->encoded[0].stem, payload, len);
    k->encoded[0].place = p->codec;
    k->encoded[0].found =
        (page_key){bytes, stem_len, k->hash, STEM_NO_SUFFIX, len, k->encoded[0].stem};
}

static void set_suffix(map_key *k, uint8_t suffix) {
    k->suffix = suffix;
    k->len = k->stem_len + STEM_DIGITS;
    for (int i = 0; i < 2; i++) {
        k->encoded[i].found.suffix = suffix;
        k->encoded[i].found.key_len = k->len;
    }
}

/* The record of a slot as it will be written. False: out of memory or damaged. */
static bool record_of_slot(map *m, const page_walk *at, map_key *k, map_record *r) {
    const page *p = at->p;
    uint32_t key_bytes = page_is_member(at->tag) ? 0 : 1u + at->payload[0];
    large *l = page_large(p, at->slot);
    *r = (map_record){.value = at->payload + key_bytes,
                      .value_len = at->len - key_bytes,
                      .large = l,
                      .code = at->code,
                      .base = page_base(p),
                      .uses = page_uses(p, at->slot)};
    if (p->codec == m->codecs->current) return true;
    if (l && codec_is_giant(large_value(l), l->value_len)) return true;

    map_pos pos = {.p = at->p, .slot = at->slot};
    size_t len;
    codec_value encoded;
    const uint8_t *value = map_value(m, &pos, &len);
    if (!value || !codec_encode_moved(m->codecs, value, len, &encoded)) return false;
    r->value = encoded.bytes;
    r->value_len = (uint32_t)encoded.len;
    r->large = NULL;
    if (!map_is_large(map_encoded_key(m, k, m->codecs->current), encoded.len)) return true;
    r->large = map_large_new(m, k, r->value, encoded.len);
    return r->large != NULL;
}

/* How many slots behind this one go where it goes, in its wake: the rest of its group, or of the
 * singles in a row if all records go to one bucket. */
static uint32_t wake(const pouring *to, const page *p, uint32_t slot) {
    const uint8_t *tags = page_tags(p);
    bool member = page_is_member(tags[slot]);
    uint32_t end = slot + 1;
    if (!member && to->index[0] != to->index[1]) return 0;
    while (end < p->slots && !page_is_head(tags[end]) && page_is_member(tags[end]) == member) end++;
    return end - slot - 1;
}

/* Pours the record and what goes in its wake. Returns how many slots; 0: out of memory, damaged. */
static uint32_t pour_record(pouring *to, const page_walk *at, map_key *k) {
    map_record r;
    uint32_t slot;
    if (!record_of_slot(to->m, at, k, &r)) return 0;
    /* A record that belongs to neither (its key is damaged) goes to the first. */
    int side = to->index[0] != to->index[1] && map_index(k->hash, to->buckets) == to->index[1];
    map_target target = {.b = &to->out[side], .page_room = PAGE_BYTES};
    page **placed = map_place(to->m, &target, k, &r, &slot);
    if (!placed) {
        if (r.large && r.large != page_large(at->p, at->slot)) to->m->codecs->mem->free(r.large);
        return 0;
    }
    return 1 + map_place_behind(to->m, placed, slot, at->p, at->next, wake(to, at->p, at->slot));
}

static bool pour_page(pouring *to, page *p) {
    uint8_t bytes[MAP_KEY_ROOM];
    size_t stem_len = 0, len;
    uint32_t poured = 0; /* up to this slot */
    map_key k;
    page_rebase(p, to->now_ticks);
    for (page_walk at = page_walk_start(p); page_walk_next(&at);) {
        if (at.slot < poured) continue;
        large *l = page_large(p, at.slot);
        if (l) {
            map_key_init(to->m, &k, l->bytes, l->key_len);
        } else {
            if (!map_read_key(to->m, p, at.slot, bytes, &stem_len, &len)) return false;
            if (page_is_member(at.tag))
                set_suffix(&k, at.tag);
            else
                key_of_slot(to->m, p, at.slot, bytes, stem_len, &k);
            if (page_is_head(at.tag)) continue;
        }
        uint32_t count = pour_record(to, &at, &k);
        if (count == 0) return false;
        poured = at.slot + count;
    }
    return true;
}

/* ---- rebuild --------------------------------------------------------------------------------- */

static bool holds_large(bucket *b, const large *l) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t slot = 0; pages[i]->flags & PAGE_LARGES && slot < pages[i]->slots; slot++)
            if (page_large(pages[i], slot) == l) return true;
    return false;
}

/* Frees the large records of a page that the `other` buckets do not hold. */
static void free_larges(map *m, page *p, bucket *const other[2]) {
    for (uint32_t slot = 0; p->flags & PAGE_LARGES && slot < p->slots; slot++) {
        large *l = page_large(p, slot);
        if (l && !holds_large(other[0], l) && !holds_large(other[1], l)) m->codecs->mem->free(l);
    }
}

/* Frees the pages of a bucket, or retires them, and those of its large records that the `other`
 * buckets do not hold. */
static void discard(map *m, bucket *b, bucket *const other[2], mem_retired *old) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) {
        free_larges(m, pages[i], other);
        if (old)
            mem_retire(m->codecs->mem, old, pages[i]);
        else
            m->codecs->mem->free(pages[i]);
    }
    bucket_clear(m->codecs->mem, b);
}

/* Adds what a bucket takes to the totals, or takes it away (sign -1). */
static void count_bucket(map *m, bucket *b, int64_t sign) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) {
        page *p = pages[i];
        m->totals.pages += (uint64_t)sign;
        m->totals.page_bytes += (uint64_t)(sign * p->cap);
        for (uint32_t slot = 0; p->flags & PAGE_LARGES && slot < p->slots; slot++) {
            large *l = page_large(p, slot);
            if (!l) continue;
            m->totals.large += (uint64_t)sign;
            m->totals.large_bytes += (uint64_t)(sign * (int64_t)m->codecs->mem->usable(l));
        }
    }
}

/* Pours bucket `from`, and `also` if it is another, into the buckets that `to` names. False: out of
 * memory or damaged, nothing changed. */
static bool rebuild(pouring *to, uint32_t from, uint32_t also) {
    map *m = to->m;
    bucket *in[2] = {map_bucket(m, from), map_bucket(m, also)};
    int inputs = from == also ? 1 : 2;
    bucket *out[2] = {&to->out[0], &to->out[1]};
    map_totals before = m->totals;
    bool done = true;
    for (int i = 0; i < inputs && done; i++) {
        uint32_t n;
        page **pages = bucket_pages(in[i], &n);
        for (uint32_t j = 0; j < n && done; j++) done = pour_page(to, pages[j]);
    }
    for (int i = 0; i < 2 && done; i++) map_trim_bucket(m, out[i]);
    m->totals = before;
    if (!done) {
        for (int i = 0; i < 2; i++) discard(m, out[i], in, NULL);
        return false;
    }
    for (int i = 0; i < inputs; i++) count_bucket(m, in[i], -1);
    for (int i = 0; i < 2; i++) count_bucket(m, out[i], 1);
    for (int i = 0; i < inputs; i++) discard(m, in[i], out, to->old);
    *map_bucket(m, to->index[0]) = to->out[0];
    if (to->index[1] != to->index[0]) *map_bucket(m, to->index[1]) = to->out[1];
    return true;
}

/* The records of one bucket, written anew. */
static bool rewrite(map *m, uint32_t index, uint64_t now_ticks, mem_retired *old) {
    pouring to = {
        .m = m, .index = {index, index}, .buckets = m->buckets, .now_ticks = now_ticks, .old = old};
    return rebuild(&to, index, index);
}

/* ---- growing and shrinking ------------------------------------------------------------------- */

/* Room for the first segment to hold bucket `index`. */
static bool grow_first(map *m, uint32_t index) {
    const mem *mem = m->codecs->mem;
    if (index < mem->usable(m->first) / sizeof(bucket)) return true;
    /* A quarter more: the size classes stand four to a doubling. */
    size_t wanted = index + 1 + index / 4;
    if (wanted > MAP_SEGMENT) wanted = MAP_SEGMENT;
    bucket *grown = mem->realloc(m->first, wanted * sizeof *grown);
    if (grown) m->first = grown;
    return grown != NULL;
}

static bool add_segment(map *m, uint32_t number) {
    const mem *mem = m->codecs->mem;
    bucket **segments = mem->realloc(m->segments, (number + 1) * sizeof *segments);
    if (!segments) return false;
    m->segments = segments;
    return (segments[number] = mem->alloc(MAP_SEGMENT * sizeof(bucket))) != NULL;
}

bool map_add_bucket(map *m) {
    uint32_t index = m->buckets;
    if (index < MAP_SEGMENT ? !grow_first(m, index)
                            : index % MAP_SEGMENT == 0 && !add_segment(m, index / MAP_SEGMENT - 1))
        return false;
    m->buckets++;
    *map_bucket(m, index) = (bucket){{NULL}};
    return true;
}

static void drop_last_bucket(map *m) {
    uint32_t index = --m->buckets;
    if (index >= MAP_SEGMENT && index % MAP_SEGMENT == 0)
        m->codecs->mem->free(m->segments[index / MAP_SEGMENT - 1]);
}

static uint32_t buddy(uint32_t index) {
    return index - (1u << (31 - __builtin_clz(index)));
}

static void split(map *m, uint64_t now_ticks) {
    uint32_t added = m->buckets;
    if (!map_add_bucket(m)) return;
    uint32_t from = buddy(added);
    pouring to = {.m = m, .index = {from, added}, .buckets = m->buckets, .now_ticks = now_ticks};
    if (!rebuild(&to, from, from)) drop_last_bucket(m);
}

static bool merge(map *m, uint64_t now_ticks, mem_retired *old) {
    uint32_t last = m->buckets - 1, into = buddy(last);
    pouring to = {
        .m = m, .index = {into, into}, .buckets = last, .now_ticks = now_ticks, .old = old};
    if (!rebuild(&to, into, last)) return false;
    drop_last_bucket(m);
    return true;
}

/* Whether a bucket's pages hold so much less than they could that rewriting it pays: a sixth
 * of what they hold, and more than half a record a page, which is never to be had. */
static bool wasteful(bucket *b) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    uint64_t used = 0, cap = 0, slots = 0;
    for (uint32_t i = 0; i < n; i++) {
        used += pages[i]->used;
        cap += pages[i]->cap;
        slots += pages[i]->slots;
    }
    return n > 1 && cap - used > used / 6 + n * used / slots;
}

void map_balance(map *m, uint32_t bucket_index, uint64_t now_ticks) {
    uint64_t wanted = (uint64_t)m->buckets * MAP_BUCKET_BYTES;
    if (m->totals.page_bytes > wanted)
        split(m, now_ticks);
    else if (m->buckets > 1 && m->totals.page_bytes < MERGE_SHARE(wanted))
        merge(m, now_ticks, NULL);
    else if (wasteful(map_bucket(m, bucket_index)))
        rewrite(m, bucket_index, now_ticks, NULL);
}

/* ---- codecs ---------------------------------------------------------------------------------- */

static bool all_current(const map *m, bucket *b) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++)
        if (pages[i]->codec != m->codecs->current) return false;
    return true;
}

bool map_reencode(map *m, uint32_t bucket_index, uint64_t now_ticks, mem_retired *old) {
    bool done =
        all_current(m, map_bucket(m, bucket_index)) || rewrite(m, bucket_index, now_ticks, old);
    for (int i = 0; done && i < MERGES_AT_A_TIME && m->buckets > 1; i++) {
        if (m->totals.page_bytes >= SPARSE_SHARE((uint64_t)m->buckets * MAP_BUCKET_BYTES)) break;
        done = merge(m, now_ticks, old);
    }
    return done;
}
