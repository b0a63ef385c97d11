/* map_place.c: putting one record into a page. */
#include "base/stem.h"
#include "map/map_inside.h"

#include <string.h>

bool map_is_large(const page_key *k, size_t value_len) {
    if (!k->stem) return true;
    return 1u + k->stem_len + value_len > PAGE_PAYLOAD_MAX;
}

large *map_large_new(const map *m, const map_key *k, const uint8_t *value, size_t value_len) {
    const large head = {.key_len = (uint32_t)k->len & 0x7fffffff, .value_len = (uint32_t)value_len};
    large *l = m->shared->mem->alloc(large_bytes(&head));
    if (!l) return NULL;
    *l = head;
    memcpy(l->bytes, k->key, k->len);
    memcpy(large_value(l), value, value_len);
    if (k->len > LARGE_LONG_KEY) large_set_hash(l, k->hash);
    return l;
}

large *map_large_loaded(const map *m, const map_key *k, const uint8_t *value, size_t value_len) {
    bool raw = value_len > 0 && value[0] == CODEC_RAW_BYTE;
    if (raw && k->len <= LARGE_LONG_KEY && young_is_long(value_len - 1))
        return map_young_new(m, k, value + 1, value_len - 1, 0);
    return map_large_new(m, k, value, value_len);
}

/* What a record looks like in a page. */
typedef struct shape {
    uint8_t tag;
    bool member;
    uint32_t len; /* payload */
} shape;

static shape shape_of(const page_key *k, const map_record *r) {
    if (r->large) return (shape){page_single_tag(k->hash, k->suffix), false, PAGE_LARGE_BYTES};
    if (k->suffix != STEM_NO_SUFFIX) return (shape){k->suffix, true, r->value_len};
    return (shape){page_single_tag(k->hash, k->suffix), false, 1u + k->stem_len + r->value_len};
}

static void fill_payload(uint8_t *dst, const page_key *k, const map_record *r, bool member) {
    if (r->large) {
        *dst = PAGE_LARGE;
        memcpy(dst + 1, &r->large, sizeof r->large);
        return;
    }
    if (!member) {
        *dst = k->stem_len;
        memcpy(dst + 1, k->stem, k->stem_len);
        dst += 1 + k->stem_len;
    }
    memcpy(dst, r->value, r->value_len);
}

/* Bytes by which a page grows with this record; `head` as page_find_head() has it. */
static uint32_t growth(const page *p, const page_key *k, const map_record *r, shape s, int head) {
    uint32_t grown = page_growth(p, s.len, false, r->code);
    if (s.member && head < 0) grown += page_growth(p, k->stem_len, true, EXPIRY_NONE) + 2;
    return grown;
}

/* Bytes by which its block grows with so many more in it. */
static uint32_t block_growth(const page *p, uint32_t grown) {
    uint32_t used = p->used + grown;
    return used <= p->cap ? 0 : map_page_cap(used) - p->cap;
}

/* Only if the block has room for the count. */
static void set_uses(page *p, uint32_t slot, uint8_t uses) {
    if (uses == page_uses(p, slot) || p->used + page_uses_growth(p) > p->cap) return;
    page_set_uses(p, slot, uses);
}

uint64_t map_base_of(const map *m, const page *p, uint64_t base) {
    return m->shared->follows ? page_base_before_all(p, base) : base;
}

/* Puts the record into a page that has room for it. Returns its slot. */
static uint32_t put_into(map *m, page *p, const page_key *k, const map_record *r, shape s,
                         int head) {
    uint32_t at = p->slots;
    uint64_t base = map_base_of(m, p, r->base);
    uint16_t code = expiry_rebase(r->code, r->base, base);
    if (s.member && head >= 0) {
        at = page_group_end(p, (uint32_t)head);
    } else if (s.member) {
        memcpy(page_insert(p, at, page_head_tag(k->hash), k->stem_len, EXPIRY_NONE, 0), k->stem,
               k->stem_len);
        at++;
    }
    if (r->large)
        p->flags |= PAGE_LARGES;
    else if (r->fast)
        p->flags |= PAGE_FAST;
    fill_payload(page_insert(p, at, s.tag, s.len, code, base), k, r, s.member);
    set_uses(p, at, r->uses);
    return at;
}

map_record map_record_of(const page_walk *at) {
    uint32_t key_bytes = page_is_member(at->tag) ? 0 : 1u + at->payload[0];
    large *l = page_large(at->p, at->slot);
    return (map_record){.value = l ? NULL : at->payload + key_bytes,
                        .value_len = l ? 0 : at->len - key_bytes,
                        .large = l,
                        .fast = at->p->flags & PAGE_FAST,
                        .code = at->code,
                        .base = page_base(at->p),
                        .uses = page_uses(at->p, at->slot)};
}

/* Bytes up to which a page of the bucket takes records. */
static uint32_t page_most(const map_target *to, uint32_t index) {
    return to->cut && index + 1 >= to->cut ? PAGE_CAP_LAST : PAGE_BYTES;
}

page **map_place(map *m, const map_target *to, map_key *k, const map_record *r, uint32_t *slot) {
    const page_key *pk = map_encoded_key(m, k, to->codec);
    shape s = shape_of(pk, r);
    uint32_t n, grown = 0, least = UINT32_MAX;
    int head = -1;
    page **pages = bucket_pages(to->b, &n), **at = NULL;
    for (uint32_t i = 0; i < n && head < 0; i++) {
        page *p = pages[i];
        if (p == to->avoid || p->codec != to->codec) continue;
        int h = s.member ? page_find_head(p, pk) : -1;
        uint32_t g = growth(p, pk, r, s, h), larger = block_growth(p, g);
        if (p->used + g > page_most(to, i) || (h < 0 && larger >= least)) continue;
        at = &pages[i];
        grown = g;
        least = larger;
        head = h;
    }
    if (!at) {
        page empty = {.used = PAGE_HEADER_BYTES, .flags = map_page_flags(m)};
        grown = PAGE_HEADER_BYTES + growth(&empty, pk, r, s, -1);
        at = map_add_page(m, to->b, to->codec, grown > to->page_room ? grown : to->page_room);
        if (!at) return NULL;
    } else if (!map_make_room(m, at, (int)grown)) {
        return NULL;
    }
    *slot = put_into(m, *at, pk, r, s, head);
    return at;
}

uint32_t map_place_behind(map *m, const map_target *to, page **at, uint32_t slot, const page *from,
                          uint32_t first, uint32_t count) {
    uint32_t n, grown, most = page_most(to, (uint32_t)(at - bucket_pages(to->b, &n)));
    uint32_t fitting = page_run_fitting(*at, from, first, count, most, &grown);
    if (fitting == 0 || !map_make_room(m, at, (int)grown)) return 0;
    page_insert_run(*at, slot + 1, from, first, fitting);
    return fitting;
}

bool map_overwrite(map *m, const page_key *pk, const map_pos *pos, const map_record *r) {
    page *p = pos->p;
    if (p->codec != map_codec(m) || r->large || page_large(p, pos->slot)) return false;
    shape s = shape_of(pk, r);
    int grown = page_regrowth(p, pos->slot, s.len) + (int)page_expiry_growth(p, r->code);
    if (p->used + grown > PAGE_BYTES) return false;
    page **at = map_page_at(m, pos);
    if (!map_make_room(m, at, grown)) return false;
    p = *at;
    /* In this order: a value that shrinks may make the room for its expiry. */
    fill_payload(page_replace(p, pos->slot, s.len), pk, r, s.member);
    uint64_t base = map_base_of(m, p, r->base);
    page_set_code(p, pos->slot, expiry_rebase(r->code, r->base, base), base);
    set_uses(p, pos->slot, r->uses);
    if (r->fast) p->flags |= PAGE_FAST;
    map_trim_page(m, at);
    return true;
}
