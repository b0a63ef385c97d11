/*
 * map_rebuild.c: everything that moves more than one record.
 *
 * rebuild() takes the pages of one or two buckets and pours their records into new pages of one
 * or two buckets, with the groups of a stem together. A split, a merge and a compaction differ only
 * in which buckets these are:
 *
 *      split        b        -> b, last + 1
 *      merge        b, last  -> b
 *      compaction   b        -> b
 *
 * Records move as they are: no value is decoded or encoded, and of a large one only the pointer
 * moves, so that this takes as long as copying the pages does, whatever the records hold. A record
 * of an old codec comes into a page of that codec.
 *
 * The old pages are freed only when the new ones are complete, so running out of memory leaves
 * things as they were.
 */
#include "map/map_inside.h"

/* Fewer bytes of pages a bucket than this share of MAP_BUCKET_BYTES: two are merged. */
#define MERGE_SHARE(bytes) ((bytes)*2 / 5)
/* The same while all is encoded anew, which mostly takes less room than before. */
#define SPARSE_SHARE(bytes) ((bytes)*3 / 4)
/* More than this share, then: some are split. What was merged is not, not even two into one. */
#define CROWDED_SHARE(bytes) ((bytes)*3 / 2)
/* A bucket is rewritten when that makes its pages smaller by one byte in so many: by a command that
 * others wait for; in the background. */
#define WASTE_ONE_IN      8
#define WASTE_ONE_IN_REST 32
/* Bytes that it must save to cut a page in two: look-ups have one more to go through. */
#define CUT_SAVES 192

typedef struct pouring {
    map *m;
    uint32_t index[2]; /* where out[] will stand; equal if there is one only */
    uint32_t buckets;  /* of the map afterwards */
    uint64_t now_ticks;
    mem_retired *old; /* where the old pages go; NULL: they are freed at once */
    uint32_t cut;     /* as a target has it */
    bucket out[2];
} pouring;

/* ---- how many pages -------------------------------------------------------------------------- */

/* What pages hold together. */
typedef struct contents {
    uint64_t used, cap, slots; /* bytes, bytes */
    uint32_t pages;
    bool alike; /* they are of one codec */
} contents;

static contents contents_of(bucket *b) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    contents c = {.pages = n, .alike = true};
    for (uint32_t i = 0; i < n; i++) {
        c.alike &= pages[i]->codec == pages[0]->codec;
        c.used += pages[i]->used;
        c.cap += pages[i]->cap;
        c.slots += pages[i]->slots;
    }
    return c;
}

/* What a whole page that is the last one takes less if it is cut in two: the largest that is not
 * whole, and one for the rest, and for the record that the first has no room for. Bytes; 0: it is
 * not worth it. */
static uint32_t saved_by_cut(uint64_t bytes, uint64_t record) {
    uint64_t last = bytes % PAGE_BYTES + bytes / PAGE_BYTES * record / 2;
    if (last <= PAGE_CAP_LAST || last > PAGE_BYTES) return 0;
    uint32_t rest = (uint32_t)(last - PAGE_CAP_LAST + PAGE_HEADER_BYTES + record);
    uint32_t two = PAGE_CAP_LAST + map_page_cap(rest);
    return two + CUT_SAVES <= PAGE_BYTES ? PAGE_BYTES - two : 0;
}

/* The pages that so many bytes need, bytes. */
static uint64_t pages_for(uint64_t bytes) {
    return bytes / PAGE_BYTES * PAGE_BYTES + map_page_cap((uint32_t)(bytes % PAGE_BYTES));
}

/* ---- pouring one page ------------------------------------------------------------------------ */

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

/* Pours the record and what goes in its wake. Returns how many slots; 0: out of memory. */
static uint32_t pour_record(pouring *to, const page_walk *at, map_key *k) {
    map_record r = map_record_of(at);
    uint32_t slot;
    /* A record that belongs to neither (its key is damaged) goes to the first. */
    int side = to->index[0] != to->index[1] && map_index(k->hash, to->buckets) == to->index[1];
    map_target target = {
        .b = &to->out[side], .codec = at->p->codec, .page_room = PAGE_BYTES, .cut = to->cut};
    page **placed = map_place(to->m, &target, k, &r, &slot);
    if (!placed) return 0;
    uint32_t behind = wake(to, at->p, at->slot);
    return 1 + map_place_behind(to->m, &target, placed, slot, at->p, at->next, behind);
}

static bool pour_page(pouring *to, page *p) {
    map_keys keys = {.m = to->m};
    uint32_t poured = 0; /* up to this slot */
    page_rebase(p, map_base_of(to->m, p, to->now_ticks));
    for (page_walk at = page_walk_start(p); page_walk_next(&at);) {
        if (at.slot < poured) continue;
        if (!map_keys_read(&keys, &at)) return false;
        if (page_is_head(at.tag)) continue;
        uint32_t count = pour_record(to, &at, &keys.key);
        if (count == 0) return false;
        poured = at.slot + count;
    }
    return true;
}

/* ---- rebuild --------------------------------------------------------------------------------- */

static void discard(map *m, bucket *b, mem_retired *old) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) map_drop_page(m, pages[i], old);
    bucket_clear(m->shared->mem, b);
}

/* The page from which on a bucket that takes all of some others has smaller ones; 0: none. */
static uint32_t where_to_cut(const pouring *to, bucket *const *in, int inputs) {
    uint64_t used = 0, slots = 0;
    if (to->index[0] != to->index[1]) return 0; /* nobody knows what comes to each */
    for (int i = 0; i < inputs; i++) {
        contents c = contents_of(in[i]);
        if (!c.alike) return 0;
        used += c.used;
        slots += c.slots;
    }
    if (slots == 0 || !saved_by_cut(used, used / slots)) return 0;
    return 1 + (uint32_t)(used / PAGE_BYTES);
}

/* Pours bucket `from`, and `also` if it is another, into the buckets that `to` names. False: out of
 * memory or damaged, nothing changed. */
static bool rebuild(pouring *to, uint32_t from, uint32_t also) {
    map *m = to->m;
    bucket *in[2] = {map_bucket(m, from), map_bucket(m, also)};
    int inputs = from == also ? 1 : 2;
    bool done = true;
    to->cut = where_to_cut(to, in, inputs);
    for (int i = 0; i < inputs && done; i++) {
        uint32_t n;
        page **pages = bucket_pages(in[i], &n);
        for (uint32_t j = 0; j < n && done; j++) done = pour_page(to, pages[j]);
    }
    if (!done) {
        for (int i = 0; i < 2; i++) discard(m, &to->out[i], NULL);
        return false;
    }
    for (int i = 0; i < 2; i++) map_trim_bucket(m, &to->out[i]);
    for (int i = 0; i < inputs; i++) discard(m, in[i], to->old);
    *map_bucket(m, to->index[0]) = to->out[0];
    if (to->index[1] != to->index[0]) *map_bucket(m, to->index[1]) = to->out[1];
    return true;
}

/* The records of one bucket, in pages that are as full as they can be. */
static bool rewrite(map *m, uint32_t index, uint64_t now_ticks, mem_retired *old) {
    pouring to = {
        .m = m, .index = {index, index}, .buckets = m->buckets, .now_ticks = now_ticks, .old = old};
    return rebuild(&to, index, index);
}

/* ---- growing and shrinking ------------------------------------------------------------------- */

static uint32_t buddy(uint32_t index) {
    return index - (1u << (31 - __builtin_clz(index)));
}

bool map_split(map *m, uint64_t now_ticks, mem_retired *old) {
    uint32_t added = m->buckets, from = buddy(added);
    if (!map_add_bucket(m)) return false;
    pouring to = {
        .m = m, .index = {from, added}, .buckets = m->buckets, .now_ticks = now_ticks, .old = old};
    if (rebuild(&to, from, from)) return true;
    map_drop_bucket(m);
    return false;
}

bool map_all_current(const map *m, uint32_t index) {
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, index), &n);
    for (uint32_t i = 0; i < n; i++)
        if (pages[i]->codec != map_codec(m)) return false;
    return true;
}

bool map_merge(map *m, uint64_t now_ticks, mem_retired *old) {
    uint32_t last = m->buckets - 1, into = buddy(last);
    pouring to = {
        .m = m, .index = {into, into}, .buckets = last, .now_ticks = now_ticks, .old = old};
    if (!map_all_current(m, last) || !rebuild(&to, into, last)) return false;
    map_drop_bucket(m);
    return true;
}

/* What young values are going to take in pages, about: as much as those that were encoded lately.
 */
static uint64_t young_to_come(const map *m) {
    const map_totals *t = &m->totals;
    if (t->young == 0) return 0;
    uint64_t bytes = (uint64_t)codecs_expected_len(&m->shared->codecs, t->young_bytes);
    return map_at_most(t->young * MAP_LARGE_BYTES, bytes);
}

/* What buckets are split and merged by: bytes of pages, and a share for each large record, so that
 * a bucket does not hold too many of them. Young ones count as what they are to become. */
static uint64_t weight(const map *m) {
    const map_totals *t = &m->totals;
    return t->page_bytes + (t->large - t->young) * MAP_LARGE_BYTES + young_to_come(m);
}

bool map_is_crowded(const map *m) {
    return weight(m) > CROWDED_SHARE((uint64_t)m->buckets * MAP_BUCKET_BYTES);
}

bool map_is_sparse(const map *m) {
    return m->buckets > 1 && weight(m) < SPARSE_SHARE((uint64_t)m->buckets * MAP_BUCKET_BYTES);
}

/* What the bucket's young values are going to take. Some of the large ones are young. */
static uint64_t young_to_fill(const map *m, bucket *b) {
    uint64_t larges = 0;
    uint32_t n;
    if (m->totals.young == 0) return 0;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) larges += page_larges(pages[i]);
    return larges * young_to_come(m) / m->totals.large;
}

/* Whether rewriting a bucket pays: its pages take more than others would by one byte in `one_in`,
 * not counting one record's bytes a page, which no rewriting could fill; and a third more than that
 * is free in them, since what others would take is only worked out, and what it does not gain would
 * be tried again. Others would have to hold what its young values will take as well: many have left
 * just such a hole. Pages of several codecs would stay apart; they will be of one soon. In the
 * background a whole page that is the last may also be cut in two. */
static bool wasteful(const map *m, bucket *b, bool at_rest) {
    unsigned one_in = at_rest ? WASTE_ONE_IN_REST : WASTE_ONE_IN;
    contents c = contents_of(b);
    if (!c.alike || c.slots == 0 || (c.pages == 1 && !at_rest)) return false;
    uint64_t record = c.used / c.slots;
    uint64_t unused = c.pages * record;
    if (c.cap - c.used <= c.used / (one_in * 3 / 4) + unused) return false;
    uint64_t to_hold = c.used + young_to_fill(m, b), needed = pages_for(to_hold);
    if (at_rest) needed -= saved_by_cut(to_hold, record);
    return c.cap > needed + needed / one_in + unused;
}

void map_compact(map *m, uint32_t bucket_index, uint64_t now_ticks, mem_retired *old) {
    if (wasteful(m, map_bucket(m, bucket_index), true)) rewrite(m, bucket_index, now_ticks, old);
}

void map_balance(map *m, uint32_t bucket_index, uint64_t now_ticks) {
    uint64_t wanted = (uint64_t)m->buckets * MAP_BUCKET_BYTES;
    if (weight(m) > wanted)
        map_split(m, now_ticks, NULL);
    else if (m->buckets > 1 && weight(m) < MERGE_SHARE(wanted))
        map_merge(m, now_ticks, NULL);
    else if (wasteful(m, map_bucket(m, bucket_index), false))
        rewrite(m, bucket_index, now_ticks, NULL);
}
