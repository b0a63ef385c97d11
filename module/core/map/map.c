/* map.c: finding, writing and deleting one record. See map.h. */
#include "map/map_inside.h"
#include "base/siphash.h"
#include "base/stem.h"

#include <string.h>

#define FIRST_BUCKETS 1
#define PAGE_CAP_MIN  64
/* The class between this one and whole pages is left out: a page that grows passes it soon, and
 * what the others leave behind there, four to a slab, was measured as 3% of the RSS. Bytes. */
#define PAGE_CAP_LAST 2560
/* A page is shrunk when that gives back a quarter of it: rarely enough to be cheap. */
#define WORTH_TRIMMING(cap, wanted) ((wanted)*4 <= (cap)*3)

/* ---- size classes ---------------------------------------------------------------------------- */

uint32_t map_page_cap(uint32_t bytes) {
    if (bytes <= PAGE_CAP_MIN) return PAGE_CAP_MIN;
    uint32_t step = 1u << (31 - __builtin_clz(bytes - 1) - 2);
    uint32_t cap = (bytes + step - 1) & ~(step - 1);
    return cap > PAGE_CAP_LAST && cap < PAGE_BYTES ? PAGE_BYTES : cap;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

map *map_new(codecs *all, const uint64_t secret[2]) {
    const mem *mem = all->mem;
    map *m = mem->alloc(sizeof *m);
    if (!m) return NULL;
    *m = (map){.codecs = all, .secret = {secret[0], secret[1]}, .buckets = FIRST_BUCKETS};
    m->first = mem->alloc(FIRST_BUCKETS * sizeof *m->first);
    if (!m->first) {
        mem->free(m);
        return NULL;
    }
    memset(m->first, 0, FIRST_BUCKETS * sizeof *m->first);
    return m;
}

void map_free_bucket(map *m, bucket *b) {
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) {
        page *p = pages[i];
        for (uint32_t slot = 0; p->flags & PAGE_LARGES && slot < p->slots; slot++) {
            large *l = page_large(p, slot);
            if (l) m->codecs->mem->free(l);
        }
        m->codecs->mem->free(p);
    }
    bucket_clear(m->codecs->mem, b);
}

void map_free(map *m) {
    const mem *mem = m->codecs->mem;
    for (uint32_t i = 0; i < m->buckets; i++) map_free_bucket(m, map_bucket(m, i));
    for (uint32_t i = MAP_SEGMENT; i < m->buckets; i += MAP_SEGMENT)
        mem->free(m->segments[i / MAP_SEGMENT - 1]);
    if (m->segments) mem->free(m->segments);
    mem->free(m->first);
    mem->free(m);
}

size_t map_bytes(const map *m) {
    const mem *mem = m->codecs->mem;
    size_t bytes = mem->usable((void *)m) + mem->usable(m->first) + m->totals.page_bytes +
                   m->totals.large_bytes;
    if (m->segments) bytes += mem->usable(m->segments);
    for (uint32_t i = 0; i < m->buckets; i++) {
        if (i > 0 && i % MAP_SEGMENT == 0) bytes += mem->usable(m->segments[i / MAP_SEGMENT - 1]);
        bytes += bucket_bytes(mem, map_bucket(m, i));
    }
    return bytes;
}

/* ---- keys ------------------------------------------------------------------------------------ */

const page_key *map_encoded_key(const map *m, map_key *k, uint8_t place) {
    for (int i = 0; i < 2; i++)
        if (k->encoded[i].place == place) return &k->encoded[i].found;
    int i = k->next;
    k->next ^= 1;
    uint8_t *stem = k->encoded[i].stem;
    size_t len = CODEC_NO_ROOM;
    if (k->len <= MAP_KEY_MAX)
        len = codec_encode_key(m->codecs, place, k->key, k->stem_len, stem, PAGE_KEY_MAX);
    bool fits = len != CODEC_NO_ROOM;
    k->encoded[i].place = place;
    k->encoded[i].found = (page_key){.key = k->key,
                                     .key_len = k->len,
                                     .hash = k->hash,
                                     .suffix = k->suffix,
                                     .stem_len = fits ? (uint8_t)len : 0,
                                     .stem = fits ? stem : NULL};
    return &k->encoded[i].found;
}

bool map_read_key(const map *m, const page *p, uint32_t slot, uint8_t *bytes, size_t *stem_len,
                  size_t *len) {
    uint8_t tag = page_tags(p)[slot];
    if (page_is_member(tag)) {
        if (*stem_len == CODEC_NO_ROOM) return false; /* the head's could not be read */
        *len = stem_join(bytes, *stem_len, tag);
        return true;
    }
    const uint8_t *payload = page_payload(p, slot);
    uint32_t encoded = page_len(p, slot);
    if (!page_is_head(tag)) encoded = *payload++;
    *len = *stem_len = codec_decode_key(m->codecs, p->codec, payload, encoded, bytes, MAP_KEY_MAX);
    return *len != CODEC_NO_ROOM;
}

const uint8_t *map_key_of_slot(const map *m, const page *p, uint32_t slot, uint8_t *bytes,
                               size_t *len) {
    const large *l = page_large(p, slot);
    if (l) {
        *len = l->key_len;
        return l->bytes;
    }
    size_t stem_len = 0;
    if (page_is_member(page_tags(p)[slot])) {
        uint32_t head = slot;
        while (!page_is_head(page_tags(p)[head])) head--;
        map_read_key(m, p, head, bytes, &stem_len, len);
    }
    return map_read_key(m, p, slot, bytes, &stem_len, len) ? bytes : NULL;
}

/* ---- finding --------------------------------------------------------------------------------- */

void map_key_init(map *m, map_key *k, const void *key, size_t len) {
    k->key = key;
    k->len = len;
    k->stem_len = stem_split(key, len, &k->suffix);
    k->hash = siphash13(key, k->stem_len, m->secret);
    k->next = k->uses = 0;
    k->encoded[0].place = k->encoded[1].place = -1;
    bucket *b = map_bucket(m, map_index(k->hash, m->buckets));
    __builtin_prefetch(b);
    map_encoded_key(m, k, m->codecs->current);
    uint32_t n;
    page **pages = bucket_pages(b, &n);
    for (uint32_t i = 0; i < n; i++) page_prefetch(pages[i]);
}

bool map_find(map *m, map_key *k, map_pos *pos) {
    uint32_t n, index = map_index(k->hash, m->buckets);
    page **pages = bucket_pages(map_bucket(m, index), &n);
    for (uint32_t i = 0; i < n; i++) {
        int slot = page_find(pages[i], map_encoded_key(m, k, pages[i]->codec));
        if (slot < 0) continue;
        *pos = (map_pos){pages[i], (uint32_t)slot, i, index};
        return true;
    }
    return false;
}

/* The encoded value of a record, wherever it lies. */
static const uint8_t *encoded_value(const map_pos *pos, uint32_t *len) {
    large *l = page_large(pos->p, pos->slot);
    if (!l) return page_value(pos->p, pos->slot, len);
    *len = l->value_len;
    return large_value(l);
}

const uint8_t *map_value(map *m, const map_pos *pos, size_t *len) {
    uint32_t encoded;
    const uint8_t *src = encoded_value(pos, &encoded);
    return codec_decode_value(m->codecs, pos->p->codec, src, encoded, len);
}

size_t map_value_len(map *m, const map_pos *pos) {
    uint32_t encoded;
    const uint8_t *src = encoded_value(pos, &encoded);
    return codec_value_len(m->codecs, pos->p->codec, src, encoded);
}

int64_t map_expiry_ms(const map_pos *pos) {
    return expiry_ms(page_code(pos->p, pos->slot), page_base(pos->p));
}

uint16_t map_expiry_code(const map_pos *pos, uint64_t base) {
    return expiry_rebase(page_code(pos->p, pos->slot), page_base(pos->p), base);
}

/* ---- room in pages --------------------------------------------------------------------------- */

/* Moves a page to a block of `cap` bytes; false when out of memory. */
static bool resize_page(map *m, page **at, uint32_t cap) {
    page *p = *at;
    uint32_t old = p->cap;
    if (cap < old) page_set_cap(p, cap);
    page *moved = m->codecs->mem->realloc(p, cap);
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

/* Makes room for `grown` more bytes (they fit PAGE_BYTES). */
static bool make_room(map *m, page **at, int grown) {
    int wanted = (*at)->used + grown;
    return wanted <= (*at)->cap || resize_page(m, at, map_page_cap((uint32_t)wanted));
}

static void trim(map *m, page **at) {
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

static uint8_t new_page_flags(const map *m) {
    return m->codecs->count_uses ? PAGE_USES : 0;
}

/* A new page of so many bytes at the end of a bucket. NULL: out of memory. */
static page **add_page(map *m, bucket *b, uint32_t bytes) {
    uint32_t cap = map_page_cap(bytes), n;
    page *p = m->codecs->mem->alloc(cap);
    if (!p || !bucket_add(m->codecs->mem, b, p)) {
        if (p) m->codecs->mem->free(p);
        return NULL;
    }
    page_init(p, cap, m->codecs->current);
    p->flags = new_page_flags(m);
    m->totals.pages++;
    m->totals.page_bytes += cap;
    return bucket_pages(b, &n) + n - 1;
}

static void remove_page(map *m, bucket *b, uint32_t index) {
    uint32_t n;
    page *p = bucket_pages(b, &n)[index];
    m->totals.pages--;
    m->totals.page_bytes -= p->cap;
    bucket_remove(m->codecs->mem, b, index);
    m->codecs->mem->free(p);
}

/* ---- placing a record ------------------------------------------------------------------------ */

bool map_is_large(const page_key *k, size_t value_len) {
    if (!k->stem) return true;
    return 1u + k->stem_len + value_len > PAGE_PAYLOAD_MAX;
}

large *map_large_new(const map *m, const map_key *k, const uint8_t *value, size_t value_len) {
    large *l = m->codecs->mem->alloc(LARGE_HEADER_BYTES + k->len + value_len);
    if (!l) return NULL;
    *l = (large){(uint32_t)k->len, (uint32_t)value_len};
    memcpy(l->bytes, k->key, k->len);
    memcpy(large_value(l), value, value_len);
    return l;
}

/* What a record looks like in a page. */
typedef struct shape {
    uint8_t tag;
    bool member;
    uint32_t len; /* payload */
} shape;

static shape shape_of(const page_key *k, const map_record *r) {
    if (r->large) return (shape){page_single_tag(k->hash), false, PAGE_LARGE_BYTES};
    if (k->suffix != STEM_NO_SUFFIX) return (shape){k->suffix, true, r->value_len};
    return (shape){page_single_tag(k->hash), false, 1u + k->stem_len + r->value_len};
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

/* Only if the block has room for the count. */
static void set_uses(page *p, uint32_t slot, uint8_t uses) {
    if (uses == page_uses(p, slot) || p->used + page_uses_growth(p) > p->cap) return;
    page_set_uses(p, slot, uses);
}

/* Puts the record into a page that has room for it. Returns its slot. */
static uint32_t put_into(page *p, const page_key *k, const map_record *r, shape s, int head) {
    if (!expiry_fits(r->code, r->base, page_base(p)) && p->flags & PAGE_EXPIRY)
        page_rebase(p, r->base);
    uint32_t at = p->slots;
    if (s.member && head >= 0) {
        at = page_group_end(p, (uint32_t)head);
    } else if (s.member) {
        memcpy(page_insert(p, at, page_head_tag(k->hash), k->stem_len, EXPIRY_NONE, 0), k->stem,
               k->stem_len);
        at++;
    }
    if (r->large) p->flags |= PAGE_LARGES;
    fill_payload(page_insert(p, at, s.tag, s.len, r->code, r->base), k, r, s.member);
    set_uses(p, at, r->uses);
    return at;
}

page **map_place(map *m, const map_target *to, map_key *k, const map_record *r, uint32_t *slot) {
    const page_key *pk = map_encoded_key(m, k, m->codecs->current);
    shape s = shape_of(pk, r);
    uint32_t n, grown = 0;
    int head = -1;
    page **pages = bucket_pages(to->b, &n), **at = NULL;
    for (uint32_t i = 0; i < n; i++) {
        page *p = pages[i];
        if (p == to->avoid || p->codec != m->codecs->current) continue;
        int h = s.member ? page_find_head(p, pk) : -1;
        uint32_t g = growth(p, pk, r, s, h);
        if (p->used + g > PAGE_BYTES || (at && h < 0)) continue;
        at = &pages[i];
        grown = g;
        head = h;
        if (h >= 0) break;
    }
    if (!at) {
        page empty = {.used = PAGE_HEADER_BYTES, .flags = new_page_flags(m)};
        grown = PAGE_HEADER_BYTES + growth(&empty, pk, r, s, -1);
        at = add_page(m, to->b, grown > to->page_room ? grown : to->page_room);
        if (!at) return NULL;
    } else if (!make_room(m, at, (int)grown)) {
        return NULL;
    }
    *slot = put_into(*at, pk, r, s, head);
    return at;
}

uint32_t map_place_behind(map *m, page **at, uint32_t slot, const page *from, uint32_t first,
                          uint32_t count) {
    uint32_t grown, fitting = page_run_fitting(*at, from, first, count, &grown);
    if (fitting == 0 || !make_room(m, at, (int)grown)) return 0;
    page_insert_run(*at, slot + 1, from, first, fitting);
    return fitting;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Counts a record out whose raw value has `value_len` bytes, CODEC_NO_ROOM if nobody can tell. */
static void count_out(map *m, size_t key_len, size_t value_len, const map_pos *pos) {
    m->totals.records--;
    m->totals.expiring -= page_code(pos->p, pos->slot) != EXPIRY_NONE;
    m->totals.key_bytes -= key_len;
    m->totals.value_bytes -= value_len == CODEC_NO_ROOM ? 0 : value_len;
}

/* The raw length of a record's value that is about to be replaced by another. Mostly that takes
 * decoding; not if it is written as it was, as whoever renews a record does. */
static size_t replaced_len(map *m, const map_pos *pos, const codec_value *value) {
    uint32_t len;
    const uint8_t *old = encoded_value(pos, &len);
    bool same =
        pos->p->codec == m->codecs->current && len == value->len && !memcmp(old, value->bytes, len);
    return same ? value->raw_len : codec_value_len(m->codecs, pos->p->codec, old, len);
}

/* Takes a record, counted out already, out of its page. */
static void take_out(map *m, const map_pos *pos) {
    page *p = pos->p;
    bucket *b = map_bucket(m, pos->bucket_index);
    large *l = page_large(p, pos->slot);
    if (l) {
        m->totals.large--;
        m->totals.large_bytes -= m->codecs->mem->usable(l);
        m->codecs->mem->free(l);
    }
    page_delete(p, pos->slot);
    uint32_t n;
    if (p->slots == 0)
        remove_page(m, b, pos->page_index);
    else
        trim(m, &bucket_pages(b, &n)[pos->page_index]);
}

void map_take_out(map *m, size_t key_len, const map_pos *pos) {
    count_out(m, key_len, map_value_len(m, pos), pos);
    take_out(m, pos);
}

static void count_in(map *m, size_t key_len, size_t value_len, uint16_t code) {
    m->totals.records++;
    m->totals.expiring += code != EXPIRY_NONE;
    m->totals.key_bytes += key_len;
    m->totals.value_bytes += value_len;
}

/* Writes over a record where it is, if it stays in a page of the current codec with room for it.
 * False if it can't. */
static bool overwrite(map *m, const page_key *pk, const map_pos *pos, const map_record *r) {
    page *p = pos->p;
    if (p->codec != m->codecs->current || r->large || page_large(p, pos->slot)) return false;
    shape s = shape_of(pk, r);
    int grown = page_regrowth(p, pos->slot, s.len) + (int)page_expiry_growth(p, r->code);
    if (p->used + grown > PAGE_BYTES) return false;
    uint32_t n;
    page **at = &bucket_pages(map_bucket(m, pos->bucket_index), &n)[pos->page_index];
    if (!make_room(m, at, grown)) return false;
    p = *at;
    if (!expiry_fits(r->code, r->base, page_base(p)) && p->flags & PAGE_EXPIRY)
        page_rebase(p, r->base);
    /* In this order: a value that shrinks may make the room for its expiry. */
    fill_payload(page_replace(p, pos->slot, s.len), pk, r, s.member);
    page_set_code(p, pos->slot, r->code, r->base);
    set_uses(p, pos->slot, r->uses);
    trim(m, at);
    return true;
}

/* The count of a record that is written over, and what is added to it. */
static uint8_t add_uses(const map_pos *pos, uint8_t added) {
    unsigned sum = added + (pos ? page_uses(pos->p, pos->slot) : 0u);
    return sum < PAGE_USES_MAX ? (uint8_t)sum : PAGE_USES_MAX;
}

bool map_put(map *m, map_key *k, const map_pos *pos, const codec_value *value, uint16_t code,
             uint64_t base) {
    const page_key *pk = map_encoded_key(m, k, m->codecs->current);
    uint32_t index = map_index(k->hash, m->buckets);
    map_record r = {.value = value->bytes,
                    .value_len = (uint32_t)value->len,
                    .code = code,
                    .base = base,
                    .uses = add_uses(pos, k->uses)};
    if (map_is_large(pk, value->len) && !(r.large = map_large_new(m, k, value->bytes, value->len)))
        return false;
    map_totals before = m->totals;
    if (pos) count_out(m, k->len, replaced_len(m, pos, value), pos);
    if (!pos || !overwrite(m, pk, pos, &r)) {
        uint32_t slot;
        map_target to = {.b = map_bucket(m, index), .avoid = pos ? pos->p : NULL};
        if (!map_place(m, &to, k, &r, &slot)) {
            if (r.large) m->codecs->mem->free(r.large);
            m->totals = before;
            return false;
        }
        if (pos) take_out(m, pos);
    }
    if (r.large) {
        m->totals.large++;
        m->totals.large_bytes += m->codecs->mem->usable(r.large);
    }
    count_in(m, k->len, value->raw_len, code);
    map_balance(m, index, base);
    return true;
}

bool map_set_expiry(map *m, map_key *k, const map_pos *pos, uint16_t code, uint64_t base) {
    bucket *b = map_bucket(m, pos->bucket_index);
    page *p = pos->p;
    int grown = (int)page_expiry_growth(p, code);
    if (p->used + grown > PAGE_BYTES) {
        /* No room here: write the record again, elsewhere. */
        size_t len;
        codec_value again;
        const uint8_t *value = map_value(m, pos, &len);
        return value && codec_encode_moved(m->codecs, value, len, &again) &&
               map_put(m, k, pos, &again, code, base);
    }
    uint32_t n;
    page **at = &bucket_pages(b, &n)[pos->page_index];
    if (!make_room(m, at, grown)) return false;
    p = *at;
    m->totals.expiring -= page_code(p, pos->slot) != EXPIRY_NONE;
    m->totals.expiring += code != EXPIRY_NONE;
    if (!expiry_fits(code, base, page_base(p)) && p->flags & PAGE_EXPIRY) page_rebase(p, base);
    page_set_code(p, pos->slot, code, base);
    return true;
}

void map_note_use(map *m, map_pos *pos) {
    uint8_t known = page_uses(pos->p, pos->slot);
    int grown = (int)page_uses_growth(pos->p);
    uint32_t n;
    page **at = &bucket_pages(map_bucket(m, pos->bucket_index), &n)[pos->page_index];
    if (known == PAGE_USES_MAX || pos->p->used + grown > PAGE_BYTES || !make_room(m, at, grown))
        return;
    pos->p = *at;
    page_set_uses(pos->p, pos->slot, known + 1);
}

void map_delete(map *m, const map_key *k, const map_pos *pos, uint64_t now_ticks) {
    map_take_out(m, k->len, pos);
    map_balance(m, pos->bucket_index, now_ticks);
}
