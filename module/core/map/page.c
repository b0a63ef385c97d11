/* page.c: records packed into one block. The bytes are drawn in page.h. */
#include "map/page_inside.h"

#include <string.h>

#define LEN_NARROW 255 /* the longest payload of a page that is not WIDE */

/* ---- where things lie ------------------------------------------------------------------------ */

static inline uint8_t *codes(const page *p) {
    return lens(p) + p->slots * len_bytes(p);
}

static uint32_t heads_before(const page *p, uint32_t slot) {
    const uint8_t *tags = page_tags(p);
    uint32_t heads = 0;
    for (uint32_t i = 0; i < slot; i++) heads += tags[i] >= PAGE_TAG_HEAD;
    return heads;
}

uint32_t page_records(const page *p) {
    return p->slots - heads_before(p, p->slots);
}

/* Only if the page has them. */
static inline uint8_t *uses(const page *p) {
    return page_tags(p) + bytes_before_uses(p);
}

uint32_t page_front_bytes(const page *p) {
    return PAGE_HEADER_BYTES + array_bytes(p);
}

static uint32_t payload_bytes(const page *p) {
    return p->used - page_front_bytes(p);
}

uint32_t page_len(const page *p, uint32_t slot) {
    const uint8_t *l = lens(p);
    return p->flags & PAGE_WIDE ? (uint32_t)(l[2 * slot] | l[2 * slot + 1] << 8) : l[slot];
}

static void set_len(page *p, uint32_t slot, uint32_t len) {
    uint8_t *l = lens(p);
    if (p->flags & PAGE_WIDE) {
        l[2 * slot] = (uint8_t)len;
        l[2 * slot + 1] = (uint8_t)(len >> 8);
    } else {
        l[slot] = (uint8_t)len;
    }
}

uint8_t *page_payload(const page *p, uint32_t slot) {
    return block_end(p) - payload_before(p, slot + 1);
}

static inline uint8_t *code_at(const page *p, uint32_t slot) {
    return codes(p) + 2 * (slot - heads_before(p, slot));
}

/* ---- reading --------------------------------------------------------------------------------- */

large *page_large(const page *p, uint32_t slot) {
    uint8_t tag = page_tags(p)[slot];
    if (!(p->flags & PAGE_LARGES) || page_is_member(tag) || page_is_head(tag)) return NULL;
    const uint8_t *payload = page_payload(p, slot);
    large *l = NULL;
    if (payload[0] == PAGE_LARGE) memcpy(&l, payload + 1, sizeof l);
    return l;
}

const uint8_t *page_value(const page *p, uint32_t slot, uint32_t *len) {
    const uint8_t *payload = page_payload(p, slot);
    uint32_t key_bytes = page_is_member(page_tags(p)[slot]) ? 0 : 1u + payload[0];
    *len = page_len(p, slot) - key_bytes;
    return payload + key_bytes;
}

static bool single_matches(const page *p, uint32_t slot, const page_key *key) {
    const uint8_t *payload = page_payload(p, slot);
    if (payload[0] == PAGE_LARGE) {
        large *l;
        memcpy(&l, payload + 1, sizeof l);
        return large_has_key(l, key->key, key->key_len);
    }
    return key->suffix == STEM_NO_SUFFIX && key->stem && payload[0] == key->stem_len &&
           !memcmp(payload + 1, key->stem, key->stem_len);
}

static int find_single(const page *p, const page_key *key) {
    const uint8_t *tags = page_tags(p), *end = tags + p->slots, *at = tags;
    uint8_t tag = page_single_tag(key->hash, key->suffix);
    while ((at = memchr(at, tag, (size_t)(end - at))) != NULL) {
        if (single_matches(p, (uint32_t)(at - tags), key)) return (int)(at - tags);
        if (++at == end) break;
    }
    return -1;
}

int page_find_head(const page *p, const page_key *key) {
    if (key->suffix == STEM_NO_SUFFIX || !key->stem || p->slots == 0) return -1;
    const uint8_t *tags = page_tags(p), *end = tags + p->slots, *at = tags;
    uint8_t tag = page_head_tag(key->hash);
    while ((at = memchr(at, tag, (size_t)(end - at))) != NULL) {
        uint32_t slot = (uint32_t)(at - tags);
        if (page_len(p, slot) == key->stem_len &&
            !memcmp(page_payload(p, slot), key->stem, key->stem_len))
            return (int)slot;
        if (++at == end) break;
    }
    return -1;
}

static int find_member(const page *p, uint32_t head, uint8_t suffix) {
    const uint8_t *tags = page_tags(p);
    /* A full group that was written in order has every member at its own place. */
    uint32_t guess = head + 1 + suffix;
    if (guess < p->slots && tags[guess] == suffix) {
        const uint8_t *between = tags + head + 1;
        uint8_t top = 0;
        for (uint32_t i = 0; i < suffix; i++) top = between[i] > top ? between[i] : top;
        if (page_is_member(top)) return (int)guess;
    }
    for (uint32_t i = head + 1; i < p->slots && page_is_member(tags[i]); i++)
        if (tags[i] == suffix) return (int)i;
    return -1;
}

int page_find(const page *p, const page_key *key) {
    if (p->slots == 0) return -1;
    int head = page_find_head(p, key);
    int slot = head >= 0 ? find_member(p, (uint32_t)head, key->suffix) : -1;
    return slot >= 0 ? slot : find_single(p, key);
}

uint32_t page_group_end(const page *p, uint32_t head) {
    const uint8_t *tags = page_tags(p);
    uint32_t end = head + 1;
    while (end < p->slots && page_is_member(tags[end])) end++;
    return end;
}

page_walk page_walk_start(page *p) {
    return (page_walk){.p = p, .payload = block_end(p)};
}

bool page_walk_next(page_walk *w) {
    const page *p = w->p;
    if (w->next == p->slots) return false;
    w->slot = w->next++;
    w->tag = page_tags(p)[w->slot];
    w->len = page_len(p, w->slot);
    w->payload -= w->len;
    w->code = EXPIRY_NONE;
    if (p->flags & PAGE_EXPIRY && !page_is_head(w->tag))
        memcpy(&w->code, codes(p) + 2 * w->records++, 2);
    return true;
}

uint32_t page_larges(const page *p) {
    uint32_t n = 0;
    if (!(p->flags & PAGE_LARGES)) return 0;
    for (uint32_t i = 0; i < p->slots; i++) n += page_len(p, i) == PAGE_LARGE_BYTES;
    return n;
}

bool page_next_large(page_walk *w, large **l) {
    if (!(w->p->flags & PAGE_LARGES)) return false;
    while (page_walk_next(w)) {
        if (page_is_member(w->tag) || page_is_head(w->tag) || w->payload[0] != PAGE_LARGE) continue;
        memcpy(l, w->payload + 1, sizeof *l);
        return true;
    }
    return false;
}

void page_set_large(const page_walk *w, large *l, uint8_t tag) {
    page_tags(w->p)[w->slot] = tag;
    memcpy((uint8_t *)w->payload + 1, &l, sizeof l);
}

/* ---- growing the arrays ---------------------------------------------------------------------- */

uint32_t page_expiry_growth(const page *p, uint16_t code) {
    if (code == EXPIRY_NONE || p->flags & PAGE_EXPIRY) return 0;
    return PAGE_BASE_BYTES + 2 * page_records(p);
}

uint32_t page_growth(const page *p, uint32_t len, bool is_head, uint16_t code) {
    uint32_t grown = 1 + len_bytes(p) + len;
    if (len > LEN_NARROW && !(p->flags & PAGE_WIDE)) grown += p->slots + 1u;
    if (!is_head) {
        grown += page_expiry_growth(p, code);
        if (code != EXPIRY_NONE || p->flags & PAGE_EXPIRY) grown += 2;
    }
    if (p->flags & PAGE_USES) grown += uses_bytes(p->slots + 1u) - uses_bytes(p->slots);
    return grown;
}

int page_regrowth(const page *p, uint32_t slot, uint32_t len) {
    int grown = (int)len - (int)page_len(p, slot);
    if (len > LEN_NARROW && !(p->flags & PAGE_WIDE)) grown += p->slots;
    return grown;
}

/*
 *      before   tags | a b c | codes, uses |            free
 *      after    tags | a 0 b 0 c 0 | codes, uses |      free      (a, b, c: lens)
 */
static void make_wide(page *p) {
    if (p->flags & PAGE_WIDE) return;
    uint8_t *l = lens(p);
    uint32_t n = p->slots;
    uint32_t behind = bytes_before_uses(p) - 2 * n;
    if (p->flags & PAGE_USES) behind += uses_bytes(n);
    memmove(l + 2 * n, l + n, behind);
    for (uint32_t i = n; i-- > 0;) {
        l[2 * i] = l[i];
        l[2 * i + 1] = 0;
    }
    p->flags |= PAGE_WIDE;
    p->used = (uint16_t)(p->used + n);
}

static void set_base(page *p, uint64_t base) {
    for (int i = 0; i < PAGE_BASE_BYTES; i++) p->body[i] = (uint8_t)(base >> (8 * i));
}

uint64_t page_base(const page *p) {
    uint64_t base = 0;
    if (p->flags & PAGE_EXPIRY)
        for (int i = 0; i < PAGE_BASE_BYTES; i++) base |= (uint64_t)p->body[i] << (8 * i);
    return base;
}

/*
 *      before          | tags | lens |                 uses |    free
 *      after    | base | tags | lens | EXPIRY_NONE ... | uses |  free
 */
static void make_expiring(page *p, uint64_t base) {
    if (p->flags & PAGE_EXPIRY) return;
    uint32_t code_bytes = 2 * page_records(p);
    uint32_t front = p->slots * (1 + len_bytes(p));
    if (p->flags & PAGE_USES)
        memmove(p->body + PAGE_BASE_BYTES + front + code_bytes, p->body + front,
                uses_bytes(p->slots));
    memmove(p->body + PAGE_BASE_BYTES, p->body, front);
    p->flags |= PAGE_EXPIRY;
    p->used = (uint16_t)(p->used + PAGE_BASE_BYTES + code_bytes);
    memset(codes(p), 0xff, code_bytes);
    set_base(p, base);
}

void page_rebase(page *p, uint64_t base) {
    if (!(p->flags & PAGE_EXPIRY)) return;
    uint64_t old = page_base(p);
    uint32_t records = page_records(p);
    uint8_t *c = codes(p);
    for (uint32_t i = 0; i < records; i++) {
        uint16_t code;
        memcpy(&code, c + 2 * i, 2);
        code = expiry_rebase(code, old, base);
        memcpy(c + 2 * i, &code, 2);
    }
    set_base(p, base);
}

uint64_t page_base_before_all(const page *p, uint64_t base) {
    uint32_t records = p->flags & PAGE_EXPIRY ? page_records(p) : 0;
    for (uint32_t i = 0; i < records; i++) {
        uint16_t code;
        memcpy(&code, codes(p) + 2 * i, 2);
        base = expiry_base_before(code, page_base(p), base);
    }
    return base;
}

/* Makes the page one in which a code that is relative to `base` means the same. */
static void fit_base(page *p, uint16_t code, uint64_t base) {
    if (code != EXPIRY_NONE) make_expiring(p, base);
    if (!expiry_fits(code, base, page_base(p))) page_rebase(p, base);
}

/* ---- adding, replacing, deleting ------------------------------------------------------------- */

void page_init(page *p, size_t cap, uint8_t codec) {
    *p = (page){.cap = (uint16_t)cap, .used = PAGE_HEADER_BYTES, .codec = codec};
}

/* Opens the place of slot `at` in the counts of n slots. */
static void insert_use(uint8_t *u, uint32_t n, uint32_t at) {
    uint32_t last = uses_bytes(n + 1) - 1, first = at / USES_PER_BYTE;
    uint8_t before = (uint8_t)((1u << (at % USES_PER_BYTE * USES_BITS)) - 1);
    if (n % USES_PER_BYTE == 0) u[last] = 0;
    for (uint32_t i = last; i > first; i--)
        u[i] = (uint8_t)(u[i] << USES_BITS | u[i - 1] >> (8 - USES_BITS));
    u[first] = (uint8_t)((u[first] & before) | (u[first] & ~before) << USES_BITS);
}

/* Closes it. */
static void remove_use(uint8_t *u, uint32_t n, uint32_t at) {
    uint32_t last = uses_bytes(n) - 1, first = at / USES_PER_BYTE;
    uint8_t before = (uint8_t)((1u << (at % USES_PER_BYTE * USES_BITS)) - 1);
    u[first] = (uint8_t)((u[first] & before) | (u[first] >> USES_BITS & ~before));
    for (uint32_t i = first; i < last; i++) {
        u[i] |= (uint8_t)(u[i + 1] << (8 - USES_BITS));
        u[i + 1] >>= USES_BITS;
    }
}

/*
 * Opens the places of `count` slots from `at` on, `records` of them no heads, in all arrays. With
 * at = 2, count = 1, in a page of three slots (`__`: what the caller fills):
 *
 *      before   a b c | A B C | aa bb cc | uses |               free
 *      after    a b __ c | A B __ C | aa bb __ cc | uses |      free
 *               tags       lens       codes
 *
 * What lies last moves first, and farthest.
 */
static void open_slots(page *p, uint32_t at, uint32_t count, uint32_t records) {
    uint32_t n = p->slots, w = len_bytes(p), gap = 0;
    uint8_t *tags = page_tags(p), *l = tags + n, *c = l + n * w, *end = c;
    uint32_t behind = count * (1 + w); /* what all that lies behind the lens moves by */
    if (p->flags & PAGE_EXPIRY) {
        uint32_t heads = heads_before(p, at), codes_in_all = n - heads_before(p, n);
        uint8_t *split = c + 2 * (at - heads);
        end = c + 2 * codes_in_all;
        gap = 2 * records;
        if (p->flags & PAGE_USES) memmove(end + behind + gap, end, uses_bytes(n));
        memmove(split + behind + gap, split, (size_t)(end - split));
        memmove(c + behind, c, (size_t)(split - c));
    } else if (p->flags & PAGE_USES) {
        memmove(end + behind, end, uses_bytes(n));
    }
    if (p->flags & PAGE_USES)
        for (uint32_t i = 0; i < count; i++) insert_use(end + behind + gap, n + i, at);
    memmove(l + count + (at + count) * w, l + at * w, (n - at) * w);
    memmove(l + count, l, at * w);
    memmove(tags + at + count, tags + at, n - at);
    p->slots = (uint16_t)(n + count);
}

/*
 * Closes the place of slot `at` in all arrays: the way back, what lies first moves first. A head
 * (`b` here) has no code:
 *
 *      before   a b c | A B C | aa cc | uses |     free
 *      after    a c | A C | aa cc | uses |         free
 */
static void close_slot(page *p, uint32_t at, bool is_head) {
    uint32_t n = p->slots, w = len_bytes(p), gap = 0;
    uint8_t *tags = page_tags(p), *l = tags + n, *c = l + n * w, *end = c, *split = c;
    if (p->flags & PAGE_EXPIRY) {
        end = c + 2 * (n - heads_before(p, n));
        split = c + 2 * (at - heads_before(p, at));
        gap = is_head ? 0 : 2;
    }
    if (p->flags & PAGE_USES) remove_use(end, n, at);
    memmove(tags + at, tags + at + 1, n - at - 1);
    memmove(l - 1, l, at * w);
    memmove(l - 1 + at * w, l + (at + 1) * w, (n - at - 1) * w);
    memmove(c - 1 - w, c, (size_t)(split - c));
    memmove(split - 1 - w, split + gap, (size_t)(end - split) - gap);
    if (p->flags & PAGE_USES) memmove(end - 1 - w - gap, end, uses_bytes(n - 1));
    p->slots = (uint16_t)(n - 1);
}

/* Opens the places of `count` slots, `records` of them no heads, with payloads of `len` bytes in
 * all. Returns where these begin. */
static uint8_t *open_place(page *p, uint32_t at, uint32_t count, uint32_t records, uint32_t len) {
    uint32_t grown = count * (1 + len_bytes(p)) + len;
    if (p->flags & PAGE_EXPIRY) grown += 2 * records;
    if (p->flags & PAGE_USES) grown += uses_bytes(p->slots + count) - uses_bytes(p->slots);
    uint32_t payload = payload_bytes(p), before = payload_before(p, at);
    uint8_t *low = block_end(p) - payload;
    memmove(low - len, low, payload - before);
    open_slots(p, at, count, records);
    p->used = (uint16_t)(p->used + grown);
    return block_end(p) - before - len;
}

uint8_t *page_insert(page *p, uint32_t at, uint8_t tag, uint32_t len, uint16_t code,
                     uint64_t base) {
    bool is_head = page_is_head(tag);
    if (!is_head) fit_base(p, code, base);
    if (len > LEN_NARROW) make_wide(p);
    uint8_t *payload = open_place(p, at, 1, is_head ? 0 : 1, len);
    page_tags(p)[at] = tag;
    set_len(p, at, len);
    if (!is_head && p->flags & PAGE_EXPIRY) memcpy(code_at(p, at), &code, 2);
    return payload;
}

uint32_t page_run_fitting(const page *p, const page *from, uint32_t first, uint32_t count,
                          uint32_t most, uint32_t *grown) {
    uint32_t n = 0, slot_bytes = 1 + len_bytes(p) + (p->flags & PAGE_EXPIRY ? 2 : 0);
    *grown = 0;
    bool alike = ((p->flags ^ from->flags) & ~PAGE_FAST) == 0;
    if (p->codec != from->codec || !alike || page_base(p) != page_base(from)) return 0;
    for (uint32_t sum = 0; n < count; n++, *grown = sum) {
        sum += slot_bytes + page_len(from, first + n);
        if (p->flags & PAGE_USES) sum += uses_bytes(p->slots + n + 1) - uses_bytes(p->slots + n);
        if (p->used + sum > most) break;
    }
    return n;
}

void page_insert_run(page *p, uint32_t at, const page *from, uint32_t first, uint32_t count) {
    uint32_t w = len_bytes(p), before = payload_before(from, first);
    uint32_t len = payload_before(from, first + count) - before;
    uint8_t *payload = open_place(p, at, count, count, len);
    p->flags |= from->flags & PAGE_FAST;
    memcpy(payload, block_end(from) - before - len, len);
    memcpy(page_tags(p) + at, page_tags(from) + first, count);
    memcpy(lens(p) + at * w, lens(from) + first * w, count * w);
    if (p->flags & PAGE_EXPIRY) memcpy(code_at(p, at), code_at(from, first), 2 * count);
    if (p->flags & PAGE_USES)
        for (uint32_t i = 0; i < count; i++) page_set_uses(p, at + i, page_uses(from, first + i));
}

uint8_t *page_replace(page *p, uint32_t slot, uint32_t len) {
    if (len > LEN_NARROW) make_wide(p);
    uint32_t old = page_len(p, slot), payload = payload_bytes(p);
    uint32_t before = payload_before(p, slot);
    if (old != len) {
        uint8_t *low = block_end(p) - payload;
        memmove(low + old - len, low, payload - before - old);
        set_len(p, slot, len);
        p->used = (uint16_t)(p->used + len - old);
    }
    return block_end(p) - before - len;
}

static void delete_slot(page *p, uint32_t slot) {
    bool is_head = page_is_head(page_tags(p)[slot]);
    uint32_t len = page_len(p, slot), before = payload_before(p, slot);
    uint32_t payload = payload_bytes(p);
    uint8_t *low = block_end(p) - payload;
    uint32_t shrunk = 1 + len_bytes(p) + len + (!is_head && p->flags & PAGE_EXPIRY ? 2 : 0);
    if (p->flags & PAGE_USES) shrunk += uses_bytes(p->slots) - uses_bytes(p->slots - 1u);
    memmove(low + len, low, payload - before - len);
    close_slot(p, slot, is_head);
    p->used = (uint16_t)(p->used - shrunk);
}

uint32_t page_delete(page *p, uint32_t slot) {
    const uint8_t *tags = page_tags(p);
    bool last_of_group = page_is_member(tags[slot]) && page_is_head(tags[slot - 1]) &&
                         (slot + 1u == p->slots || !page_is_member(tags[slot + 1]));
    delete_slot(p, slot);
    if (!last_of_group) return 1;
    delete_slot(p, slot - 1);
    return 2;
}

/* ---- expiry ---------------------------------------------------------------------------------- */

uint16_t page_code(const page *p, uint32_t slot) {
    uint16_t code = EXPIRY_NONE;
    if (p->flags & PAGE_EXPIRY) memcpy(&code, code_at(p, slot), 2);
    return code;
}

uint32_t page_next_expired(const page *p, uint32_t slot, int64_t now_ms) {
    if (!(p->flags & PAGE_EXPIRY)) return p->slots;
    const expiry_moment now = expiry_moment_of(now_ms, page_base(p));
    const uint8_t *tags = page_tags(p), *next = code_at(p, slot);
    for (; slot < p->slots; slot++) {
        uint16_t code;
        if (page_is_head(tags[slot])) continue;
        memcpy(&code, next, sizeof code);
        if (expiry_passed(&now, code)) break;
        next += sizeof code;
    }
    return slot;
}

void page_set_code(page *p, uint32_t slot, uint16_t code, uint64_t base) {
    fit_base(p, code, base);
    if (p->flags & PAGE_EXPIRY) memcpy(code_at(p, slot), &code, 2);
}

/* ---- uses ------------------------------------------------------------------------------------ */

uint8_t page_uses(const page *p, uint32_t slot) {
    if (!(p->flags & PAGE_USES)) return 0;
    return uses(p)[slot / USES_PER_BYTE] >> (slot % USES_PER_BYTE * USES_BITS) & PAGE_USES_MAX;
}

uint32_t page_uses_growth(const page *p) {
    return p->flags & PAGE_USES ? 0 : uses_bytes(p->slots);
}

void page_set_uses(page *p, uint32_t slot, uint8_t count) {
    if (!(p->flags & PAGE_USES)) {
        memset(uses(p), 0, uses_bytes(p->slots));
        p->used = (uint16_t)(p->used + uses_bytes(p->slots));
        p->flags |= PAGE_USES;
    }
    uint8_t *at = &uses(p)[slot / USES_PER_BYTE];
    uint32_t shift = slot % USES_PER_BYTE * USES_BITS;
    *at = (uint8_t)((*at & ~(PAGE_USES_MAX << shift)) | count << shift);
}

bool page_same_but_uses(const page *a, const page *b) {
    if (memcmp(a, b, sizeof *a) != 0) return false;
    size_t counts_at = (size_t)(uses(a) - (uint8_t *)a);
    size_t behind = counts_at + (a->flags & PAGE_USES ? uses_bytes(a->slots) : 0);
    return !memcmp(a, b, counts_at) &&
           !memcmp((uint8_t *)a + behind, (uint8_t *)b + behind, a->cap - behind);
}

void page_age(page *p) {
    if (!(p->flags & PAGE_USES)) return;
    uint8_t *u = uses(p);
    for (uint32_t i = 0; i < uses_bytes(p->slots); i++) {
        uint8_t not_0 = (u[i] | u[i] >> 1) & 0x55;
        u[i] = (uint8_t)(u[i] - not_0);
    }
}

/* ---- the block ------------------------------------------------------------------------------- */

void page_set_cap(page *p, size_t cap) {
    uint32_t payload = payload_bytes(p);
    memmove((uint8_t *)p + cap - payload, block_end(p) - payload, payload);
    p->cap = (uint16_t)cap;
}
