/* map_recode.c: see map_recode.h. */
#include "map/map_recode.h"

#include "map/map_inside.h"

#include <string.h>

/* ---- the batch ------------------------------------------------------------------------------- */

void recode_begin(recode_batch *b, map_shared *shared) {
    b->to = codecs_current(&shared->codecs);
    b->codec = codecs_current_id(&shared->codecs);
    b->effort = codecs_effort_moved(&shared->codecs);
    b->count = b->left = 0;
    codecs_retain(&shared->codecs, b->codec);
}

static const page *copy_of(const recode_batch *b, uint32_t i) {
    return (const page *)b->copies[i];
}

void recode_end(recode_batch *b, map_shared *shared) {
    for (uint32_t i = 0; i < b->count; i++) codecs_release(&shared->codecs, copy_of(b, i)->codec);
    codecs_release(&shared->codecs, b->codec);
    b->count = 0;
}

/* Whether all that it points to is the same in every codec. */
static bool is_whole(page *p) {
    large *l;
    for (page_walk at = page_walk_start(p); page_next_large(&at, &l);)
        if (!l->young && !codec_is_common(large_value(l), l->value_len)) return false;
    return true;
}

static bool can_be_recoded(const recode_batch *b, page *p) {
    return p->codec == b->codec ? p->flags & PAGE_FAST : is_whole(p);
}

static void add(recode_batch *b, map *m, uint32_t bucket_index, const page *p) {
    uint32_t i = b->count++;
    b->items[i] = (recode_item){.owner = m->owner,
                                .bucket = bucket_index,
                                .was = p,
                                .from = codecs_get(&m->shared->codecs, p->codec)};
    memcpy(b->copies[i], p, p->cap);
    codecs_retain(&m->shared->codecs, p->codec);
}

bool recode_fill(recode_batch *b, map *m, uint32_t bucket_index) {
    uint32_t n, wanted = 0;
    page **pages = bucket_pages(map_bucket(m, bucket_index), &n);
    for (uint32_t i = 0; i < n; i++) wanted += can_be_recoded(b, pages[i]);
    if (b->count > 0 && b->count + wanted > RECODE_PAGES) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (b->count < RECODE_PAGES && can_be_recoded(b, pages[i]))
            add(b, m, bucket_index, pages[i]);
        else
            b->left += pages[i]->codec != b->codec;
    }
    return true;
}

/* ---- a page ---------------------------------------------------------------------------------- */

typedef struct recoding {
    const codec *from, *to;
    codec_workspace *work;
    codec_effort effort;
    page *page, *second;               /* what is filled; NULL: it is the second already */
    uint8_t payload[PAGE_PAYLOAD_MAX]; /* of a slot, as it becomes */
    uint32_t len, stem_len;            /* of that, and of the stem before it; encoded, bytes */
    uint8_t head[PAGE_KEY_MAX];        /* the stem of the group, */
    uint8_t head_tag;
    bool head_is_there; /* in the page */
} recoding;

/* The key of a single or the stem of a head, to the end of the payload. */
static bool recode_key(recoding *r, const uint8_t *key, size_t len) {
    uint8_t bytes[MAP_KEY_MAX];
    size_t raw = codec_decode_key(r->from, key, len, bytes, sizeof bytes);
    if (raw == CODEC_NO_ROOM) return false;
    size_t got = codec_encode_key(r->to, bytes, raw, r->payload + r->len, PAGE_KEY_MAX);
    if (got == CODEC_NO_ROOM) return false;
    r->stem_len = (uint32_t)got;
    r->len += (uint32_t)got;
    return true;
}

/* The value behind it. False: damaged, out of memory, or the record is to live elsewhere. */
static bool recode_value(recoding *r, const uint8_t *value, size_t len) {
    codec_value out = {.bytes = value, .len = len};
    if (!codec_is_common(value, len)) {
        size_t raw_len;
        const uint8_t *raw = codec_decode_value(r->from, r->work, value, len, &raw_len);
        if (!raw ||
            !codec_encode_value(r->to, r->work, &r->work->moved, r->effort, raw, raw_len, &out))
            return false;
    }
    if (1 + r->stem_len + out.len > PAGE_PAYLOAD_MAX) return false;
    memcpy(r->payload + r->len, out.bytes, out.len);
    r->len += (uint32_t)out.len;
    return true;
}

/* The payload of a slot. */
static bool recode_slot(recoding *r, const page_walk *at) {
    r->len = 0;
    if (page_is_head(at->tag)) return recode_key(r, at->payload, at->len);
    if (page_is_member(at->tag)) return recode_value(r, at->payload, at->len);
    uint32_t key_len = at->payload[0];
    if (key_len == PAGE_LARGE) {
        memcpy(r->payload, at->payload, r->len = at->len);
        return true;
    }
    r->len = 1;
    if (!recode_key(r, at->payload + 1, key_len)) return false;
    r->payload[0] = (uint8_t)r->stem_len;
    return recode_value(r, at->payload + 1 + key_len, at->len - 1 - key_len);
}

/* A head comes into a page with the first member behind it. */
static void keep_head(recoding *r, uint8_t tag) {
    memcpy(r->head, r->payload, r->len);
    r->head_tag = tag;
    r->head_is_there = false;
}

/* Bytes by which the page grows with the slot, and with the head that it needs. */
static uint32_t growth(const recoding *r, const page_walk *at) {
    uint32_t grown = page_growth(r->page, r->len, false, at->code);
    if (page_is_member(at->tag) && !r->head_is_there)
        grown += page_growth(r->page, r->stem_len, true, EXPIRY_NONE) + 2;
    return grown;
}

/* Goes on in the second page, if there is one. */
static bool turn_over(recoding *r) {
    if (!r->second) return false;
    r->page = r->second;
    r->second = NULL;
    r->head_is_there = false;
    return true;
}

/* Adds the slot of a record. False: there is no room for it. */
static bool put_slot(recoding *r, const page_walk *at) {
    while (r->page->used + growth(r, at) > PAGE_BYTES)
        if (!turn_over(r)) return false;
    page *p = r->page;
    if (page_is_member(at->tag) && !r->head_is_there) {
        memcpy(page_insert(p, p->slots, r->head_tag, r->stem_len, EXPIRY_NONE, 0), r->head,
               r->stem_len);
        r->head_is_there = true;
    }
    uint32_t slot = p->slots;
    memcpy(page_insert(p, slot, at->tag, r->len, at->code, page_base(at->p)), r->payload, r->len);
    if (p->flags & PAGE_USES) page_set_uses(p, slot, page_uses(at->p, at->slot));
    return true;
}

void recode_page(recode_batch *b, uint32_t i, codec_workspace *w) {
    page *from = (page *)b->copies[i], *to[2] = {(page *)b->anew[i][0], (page *)b->anew[i][1]};
    recoding r = {.from = b->items[i].from,
                  .to = b->to,
                  .work = w,
                  .effort = b->effort,
                  .page = to[0],
                  .second = to[1]};
    for (int k = 0; k < 2; k++) {
        page_init(to[k], PAGE_BYTES, b->codec);
        to[k]->flags |= from->flags & (PAGE_LARGES | PAGE_USES);
    }
    for (page_walk at = page_walk_start(from); page_walk_next(&at);) {
        if (!recode_slot(&r, &at)) return;
        if (page_is_head(at.tag))
            keep_head(&r, at.tag);
        else if (!put_slot(&r, &at))
            return;
    }
    b->items[i].becomes = r.second ? 1 : 2;
    for (uint32_t k = 0; k < b->items[i].becomes; k++)
        page_set_cap(to[k], map_page_cap(to[k]->used));
}

/* ---- back into the map ----------------------------------------------------------------------- */

/* Which page of its bucket an item is of, if that is as it was; UINT32_MAX: it is not. */
static uint32_t find(const recode_batch *b, uint32_t i, map *m) {
    const recode_item *item = &b->items[i];
    uint32_t n, k = 0;
    if (item->becomes == 0 || b->codec != map_codec(m) || item->bucket >= m->buckets)
        return UINT32_MAX;
    page **pages = bucket_pages(map_bucket(m, item->bucket), &n);
    while (k < n && pages[k] != item->was) k++;
    return k < n && page_same_but_uses(pages[k], copy_of(b, i)) ? k : UINT32_MAX;
}

/* A page in the server's memory. NULL: there is none. */
static page *made(const map *m, const uint8_t *bytes) {
    const page *from = (const page *)bytes;
    page *p = m->shared->mem->alloc(from->cap);
    if (p) memcpy(p, from, from->cap);
    return p;
}

/* The first takes the place of a page, the second comes to the bucket. False: out of memory,
 * nothing changed. */
static bool put(const recode_batch *b, uint32_t i, map *m, uint32_t at, mem_retired *old) {
    bucket *to = map_bucket(m, b->items[i].bucket);
    page *first = made(m, b->anew[i][0]), *second = NULL;
    uint32_t n;
    if (b->items[i].becomes == 2) second = made(m, b->anew[i][1]);
    bool done = first && (b->items[i].becomes == 1 || (second && map_take_page(m, to, second)));
    if (done) {
        map_replace_page(m, &bucket_pages(to, &n)[at], first, old);
    } else {
        if (first) m->shared->mem->free(first);
        if (second) m->shared->mem->free(second);
    }
    return done;
}

/* Whether the next page is of the same bucket: to rewrite that would move it. */
static bool more_to_come(const recode_batch *b, uint32_t i) {
    const recode_item *item = &b->items[i];
    return i + 1 < b->count && item[1].owner == item->owner && item[1].bucket == item->bucket;
}

bool recode_put(const recode_batch *b, uint32_t i, map *m, uint64_t now_ticks, mem_retired *old) {
    uint32_t at = find(b, i, m), bucket_index = b->items[i].bucket;
    map_size before = map_size_now(m);
    bool done = at != UINT32_MAX && put(b, i, m, at, old);
    if (!more_to_come(b, i) && bucket_index < m->buckets && map_all_current(m, bucket_index))
        map_compact(m, bucket_index, now_ticks, old);
    map_tell_group(m, &before);
    return done;
}

uint32_t recode_used_before(const recode_batch *b, uint32_t i) {
    return copy_of(b, i)->used;
}

uint32_t recode_used_now(const recode_batch *b, uint32_t i) {
    uint32_t used = 0;
    for (uint32_t k = 0; k < b->items[i].becomes; k++) used += ((const page *)b->anew[i][k])->used;
    return used;
}
