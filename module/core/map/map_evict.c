/* map_evict.c: which records go. See map_evict.h. */
#include "map/map_evict.h"

#include "base/siphash.h"
#include "base/sort.h"
#include "map/map_inside.h"

#define SHARE 4 /* one in so many records of a bucket goes at a time */

#define LATELY          64 /* calls, of which `scarcity` knows */
#define TOO_FEW         0.9
#define ENOUGH          0.5
#define HORIZON_MS      1000.0 /* the nearest */
#define HORIZON_FARTHER 1.05
#define HORIZON_NEARER  0.99

/* Candidates, the best ones first: those with the lowest scores. */
typedef struct candidate {
    uint64_t score;
    uint32_t page_index, slot;
} candidate;

typedef struct choosing {
    const map_eviction *how;
    candidate best[MAP_EVICT_MAX];
    uint32_t count, wanted;
    uint32_t position; /* of the record among those of the bucket */
} choosing;

static uint64_t random_of(const choosing *c) {
    const uint64_t secret[2] = {c->how->random, 0};
    return siphash13(&c->position, sizeof c->position, secret) | 1;
}

/* Whether a record may go, and how soon: 0 at once. */
static bool score(const choosing *c, const page_walk *w, uint64_t *result) {
    int64_t at_ms = expiry_ms(w->code, page_base(w->p));
    *result = 0;
    if (at_ms < c->how->now_ms) return true;
    if (c->how->expiring_only && at_ms == EXPIRY_NEVER) return false;
    switch (c->how->order) {
    case MAP_EVICT_LEAST_USED:
        *result = random_of(c);
        return page_uses(w->p, w->slot) == 0;
    case MAP_EVICT_RANDOM:
        *result = random_of(c);
        return true;
    case MAP_EVICT_FIRST_TO_EXPIRE:
        *result = (uint64_t)at_ms;
        return at_ms != EXPIRY_NEVER &&
               (double)at_ms <= (double)c->how->now_ms + c->how->horizon_ms;
    }
    return false;
}

/* Keeps the candidate if it is among the best so far. */
static void keep(choosing *c, candidate new) {
    if (c->count == c->wanted) {
        if (c->best[c->count - 1].score <= new.score) return;
        c->count--;
    }
    uint32_t i = c->count++;
    for (; i > 0 && c->best[i - 1].score > new.score; i--) c->best[i] = c->best[i - 1];
    c->best[i] = new;
}

static void choose(choosing *c, page *const *pages, uint32_t n) {
    c->count = c->position = 0;
    for (uint32_t i = 0; i < n; i++) {
        page_walk w = page_walk_start(pages[i]);
        while (page_walk_next(&w)) {
            candidate new = {.page_index = i, .slot = w.slot};
            if (page_is_head(w.tag)) continue;
            c->position++;
            if (score(c, &w, &new.score)) keep(c, new);
        }
    }
}

/* How many of the candidates go: not more large ones than MAP_EVICT_BYTES. */
static uint32_t few_large(const choosing *c, page *const *pages) {
    uint32_t n = 0;
    for (size_t bytes = 0; n < c->count && bytes < MAP_EVICT_BYTES; n++) {
        const large *l = page_large(pages[c->best[n].page_index], c->best[n].slot);
        if (l) bytes += large_bytes(l);
    }
    return n;
}

/* From the last place in the bucket to the first: taking one out leaves those before it in place.
 */
static bool lies_behind(const void *candidates, uint32_t a, uint32_t b) {
    const candidate *x = (const candidate *)candidates + a, *y = (const candidate *)candidates + b;
    return x->page_index != y->page_index ? x->page_index > y->page_index : x->slot > y->slot;
}

static bool take_out(map *m, uint32_t bucket_index, const candidate *from, map_gone *told,
                     void *context) {
    uint8_t bytes[MAP_KEY_ROOM];
    size_t len;
    map_pos pos = {
        .slot = from->slot, .page_index = from->page_index, .bucket_index = bucket_index};
    pos.p = *map_page_at(m, &pos);
    const uint8_t *key = map_key_of_slot(m, pos.p, pos.slot, bytes, &len);
    if (!key) return false;
    told(context, key, len);
    map_take_out(m, len, &pos);
    return true;
}

/* Takes note of how a bucket was; true if its counts are to go down. */
static bool take_note(map_eviction *how, bool few) {
    bool now_and_then = how->random++ % SHARE == 0;
    how->scarcity += ((few ? 1.0 : 0.0) - how->scarcity) / LATELY;
    if (how->scarcity > TOO_FEW)
        how->horizon_ms *= HORIZON_FARTHER;
    else if (how->scarcity < ENOUGH)
        how->horizon_ms *= HORIZON_NEARER;
    if (how->horizon_ms < HORIZON_MS) how->horizon_ms = HORIZON_MS;
    if (how->horizon_ms > (double)EXPIRY_TTL_MAX_MS) how->horizon_ms = (double)EXPIRY_TTL_MAX_MS;
    /* A quarter goes at a time, so that a bucket is to age once in four times: unless there is
     * nothing to take anywhere. */
    return few && (now_and_then || how->scarcity > TOO_FEW);
}

uint32_t map_evict(map *m, uint32_t bucket_index, map_eviction *how, map_gone *told,
                   void *context) {
    uint32_t n, taken = 0, order[MAP_EVICT_MAX];
    page **pages = bucket_pages(map_bucket(m, bucket_index), &n);
    uint64_t wanted = (map_bucket_records(m, bucket_index) + SHARE - 1) / SHARE;
    choosing c = {.how = how, .wanted = wanted < MAP_EVICT_MAX ? (uint32_t)wanted : MAP_EVICT_MAX};
    map_exchange(m);
    map_size before = map_size_now(m);
    if (c.wanted == 0) return 0;
    choose(&c, pages, n);
    if (take_note(how, c.count < c.wanted))
        for (uint32_t i = 0; i < n; i++) page_age(pages[i]);
    c.count = few_large(&c, pages);
    for (uint32_t i = 0; i < c.count; i++) order[i] = i;
    sort_by(order, c.count, lies_behind, c.best);
    for (uint32_t i = 0; i < c.count; i++)
        taken += take_out(m, bucket_index, &c.best[order[i]], told, context);
    if (taken > 0) map_balance(m, bucket_index, expiry_ticks(how->now_ms));
    map_tell_group(m, &before);
    return taken;
}
