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
#include "base/siphash.h"
#include "base/stem.h"
#include "map/map_inside.h"

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

/* ---- large records that are carried over ------------------------------------------------------
 */

/* While pages are poured, a large record that only gets another pointer to it belongs to two pages.
 * The lowest bit of both pointers says so; whichever pages are kept in the end keep it. */
static large *marked(large *l) {
    return (large *)((uintptr_t)l | 1);
}
static large *unmarked(large *l) {
    return (large *)((uintptr_t)l & ~(uintptr_t)1);
}
static bool is_carried(const large *l) {
    return (uintptr_t)l & 1;
}

/* Marks all of a page whose codec is the current one. */
static void carry_all(page *p) {
    large *l;
    for (page_walk at = page_walk_start(p); page_next_large(&at, &l);)
        page_set_large(&at, marked(l));
}

/* ---- pouring one page ------------------------------------------------------------------------ */

/* Sets k to the key in `bytes`; what the page has encoded already is not encoded again. */
static void key_of_slot(const map *m, const page *p, uint32_t slot, const uint8_t *bytes,
                        size_t stem_len, map_key *k) {
    *k = (map_key){.key = bytes, .len = stem_len, .stem_len = stem_len, .suffix = STEM_NO_SUFFIX};
    k->hash = siphash13(bytes, stem_len, m->secret);
    k->encoded[0].codec = k->encoded[1].codec = -1;
    if (p->codec != map_codec(m)) return;
    bool head = page_is_head(page_tags(p)[slot]);
    const uint8_t *payload = page_payload(p, slot);
    uint8_t len = head ? (uint8_t)page_len(p, slot) : *payload++;
    memcpy(k->encoded[0].stem, payload, len);
    k->encoded[0].codec = p->codec;
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
    if (p->codec == map_codec(m)) return true;
    if (l && codec_is_giant(large_value(l), l->value_len)) {
        r->large = marked(l);
        page_set_large(at, r->large);
        return true;
    }
    map_pos pos = {.p = at->p, .slot = at->slot};
    size_t len;
    codec_value encoded;
    const uint8_t *value = map_value(m, &pos, &len);
    if (!value || !codecs_encode_moved(&m->shared->codecs, &m->shared->work, value, len, &encoded))
        return false;
    r->value = encoded.bytes;
    r->value_len = (uint32_t)encoded.len;
    r->large = NULL;
    if (!map_is_large(map_encoded_key(m, k, map_codec(m)), encoded.len)) return true;
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
        if (r.large && !is_carried(r.large)) to->m->shared->mem->free(r.large);
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
    if (p->codec == map_codec(to->m)) carry_all(p);
    for (page_walk at = page_walk_start(p); page_walk_next(&at);) {
        if (at.slot < poured) continue;
        const large *l = unmarked(page_large(p, at.slot));
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

/* Frees the pages of a bucket, or retires them, and those of its large records that were not
 * carried over. */
static void discard(const map *m, bucket *b, mem_retired *old) {
    const mem *mem = m->shared->mem;
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) {
        large *l;
        for (page_walk at = page_walk_start(pages[i]); page_next_large(&at, &l);)
            if (!is_carried(l)) mem->free(l);
        codecs_note_page_gone(&m->shared->codecs, pages[i]->codec);
        if (old)
            mem_retire(mem, old, pages[i]);
        else
            mem->free(pages[i]);
    }
    bucket_clear(mem, b);
}

/* The large records that were carried over to or from a bucket are its own again. */
static void settle(bucket *b) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) {
        large *l;
        for (page_walk at = page_walk_start(pages[i]); page_next_large(&at, &l);)
            page_set_large(&at, unmarked(l));
    }
}

/* Adds what a bucket takes to the totals, or takes it away (sign -1). */
static void count_bucket(map *m, bucket *b, int64_t sign) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) {
        large *l;
        m->totals.pages += (uint64_t)sign;
        m->totals.page_bytes += (uint64_t)(sign * pages[i]->cap);
        for (page_walk at = page_walk_start(pages[i]); page_next_large(&at, &l);) {
            size_t bytes = m->shared->mem->usable(unmarked(l));
            m->totals.large += (uint64_t)sign;
            m->totals.large_bytes += (uint64_t)(sign * (int64_t)bytes);
        }
    }
}

/* Pours bucket `from`, and `also` if it is another, into the buckets that `to` names. False: out of
 * memory or damaged, nothing changed. */
static bool rebuild(pouring *to, uint32_t from, uint32_t also) {
    map *m = to->m;
    bucket *in[2] = {map_bucket(m, from), map_bucket(m, also)};
    int inputs = from == also ? 1 : 2;
    map_totals before = m->totals;
    bool done = true;
    for (int i = 0; i < inputs && done; i++) {
        uint32_t n;
        page **pages = bucket_pages(in[i], &n);
        for (uint32_t j = 0; j < n && done; j++) done = pour_page(to, pages[j]);
    }
    for (int i = 0; i < 2 && done; i++) map_trim_bucket(m, &to->out[i]);
    m->totals = before;
    if (!done) {
        for (int i = 0; i < 2; i++) discard(m, &to->out[i], NULL);
        for (int i = 0; i < inputs; i++) settle(in[i]);
        return false;
    }
    for (int i = 0; i < inputs; i++) count_bucket(m, in[i], -1);
    for (int i = 0; i < 2; i++) count_bucket(m, &to->out[i], 1);
    for (int i = 0; i < 2; i++) settle(&to->out[i]);
    for (int i = 0; i < inputs; i++) discard(m, in[i], to->old);
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

static uint32_t buddy(uint32_t index) {
    return index - (1u << (31 - __builtin_clz(index)));
}

static void split(map *m, uint64_t now_ticks) {
    uint32_t added = m->buckets;
    if (!map_add_bucket(m)) return;
    uint32_t from = buddy(added);
    pouring to = {.m = m, .index = {from, added}, .buckets = m->buckets, .now_ticks = now_ticks};
    if (!rebuild(&to, from, from)) map_drop_bucket(m);
}

static bool merge(map *m, uint64_t now_ticks, mem_retired *old) {
    uint32_t last = m->buckets - 1, into = buddy(last);
    pouring to = {
        .m = m, .index = {into, into}, .buckets = last, .now_ticks = now_ticks, .old = old};
    if (!rebuild(&to, into, last)) return false;
    map_drop_bucket(m);
    return true;
}

/* Whether rewriting a bucket pays: what its pages have free is more than a sixth of what they
 * hold, not counting one record's bytes a page, which no rewriting could fill. */
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
        if (pages[i]->codec != map_codec(m)) return false;
    return true;
}

bool map_reencode(map *m, uint32_t bucket_index, uint64_t now_ticks, mem_retired *old) {
    map_size before = map_size_now(m);
    bool done =
        all_current(m, map_bucket(m, bucket_index)) || rewrite(m, bucket_index, now_ticks, old);
    for (int i = 0; done && i < MERGES_AT_A_TIME && m->buckets > 1; i++) {
        if (m->totals.page_bytes >= SPARSE_SHARE((uint64_t)m->buckets * MAP_BUCKET_BYTES)) break;
        done = merge(m, now_ticks, old);
    }
    map_tell_group(m, &before);
    return done;
}
