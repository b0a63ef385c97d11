/* map.c: writing and deleting one record. See map.h. */
#include "map/map_inside.h"

#include <string.h>

/* The raw length of a record's value that is about to go, if it is at hand: where it was decoded
 * just now, or is kept decoded (that goes then), or is written again as it was (NULL: it is not),
 * as whoever renews a record does. */
static bool known_len(map *m, const map_key *k, const map_pos *pos, const codec_value *value,
                      size_t *len) {
    if (pos->len_known && !young_is_long(pos->len_known - 1)) {
        *len = pos->len_known - 1;
        return true;
    }
    if (value && !value->young && pos->p->codec == map_codec(m)) {
        uint32_t n;
        const uint8_t *old = map_encoded_value(pos, &n);
        *len = value->raw_len;
        if (n == value->len && !memcmp(old, value->bytes, n)) return true;
    }
    return map_forget_hot(m, k, pos, len);
}

/* Counts a value out of the sum of raw bytes, now or later. Whether it is later. What is left of
 * that sum is a file's word where the map comes from one: it may be too little. */
static bool count_value_out(map *m, const map_pos *pos) {
    uint32_t n;
    const uint8_t *encoded = map_encoded_value(pos, &n);
    if (uncounted_note(m, pos->p->codec, encoded, n)) return true;
    size_t len = map_value_len(m, pos);
    if (len != CODEC_NO_ROOM) m->totals.value_bytes -= map_at_most(len, m->totals.value_bytes);
    return false;
}

/* The rest of a record that goes. */
static void count_rest_out(map *m, size_t key_len, const map_pos *pos) {
    m->totals.records--;
    m->totals.expiring -= page_code(pos->p, pos->slot) != EXPIRY_NONE;
    m->totals.key_bytes -= map_at_most(key_len, m->totals.key_bytes);
}

/* A record that is about to go, or to get this value (or NULL). Whether its value is to be counted
 * out later. */
static bool count_out(map *m, const map_key *k, const map_pos *pos, const codec_value *value) {
    size_t len;
    count_rest_out(m, k->len, pos);
    if (!known_len(m, k, pos, value, &len)) return count_value_out(m, pos);
    m->totals.value_bytes -= map_at_most(len, m->totals.value_bytes);
    return false;
}

/* Takes a record, counted out already, out of its page. */
static void take_out(map *m, const map_pos *pos) {
    large *l = page_large(pos->p, pos->slot);
    if (l && l->young) m->shared->young.spared++;
    if (l) map_free_large(m, l);
    map_remove_slot(m, pos);
}

void map_take_out(map *m, size_t key_len, const map_pos *pos) {
    count_rest_out(m, key_len, pos);
    count_value_out(m, pos);
    take_out(m, pos);
}

static void count_in(map *m, size_t key_len, size_t value_len, uint16_t code) {
    m->totals.records++;
    m->totals.expiring += code != EXPIRY_NONE;
    m->totals.key_bytes += key_len;
    m->totals.value_bytes += value_len;
}

/* The count of a record that is written over, and what is added to it. */
static uint8_t add_uses(const map_pos *pos, uint8_t added) {
    unsigned sum = added + (pos ? page_uses(pos->p, pos->slot) : 0u);
    return sum < PAGE_USES_MAX ? (uint8_t)sum : PAGE_USES_MAX;
}

/* In the page where it is. False: out of memory, or the page has no room. */
static bool set_code(map *m, const map_pos *pos, uint16_t code, uint64_t base) {
    int grown = (int)page_expiry_growth(pos->p, code);
    page **at = map_page_at(m, pos);
    if (pos->p->used + grown > PAGE_BYTES || !map_make_room(m, at, grown)) return false;
    uint64_t held = map_base_of(m, *at, base);
    page_set_code(*at, pos->slot, expiry_rebase(code, base, held), held);
    return true;
}

/* Writes a young value over another, in the same block. False: it can't be; nothing changed. */
static bool rewrite_young(map *m, const map_pos *pos, const codec_value *value, uint16_t code,
                          uint64_t base, uint8_t uses) {
    large *l = pos ? page_large(pos->p, pos->slot) : NULL;
    if (!value->young || !l || !l->young) return false;
    bool expires = page_code(pos->p, pos->slot) != EXPIRY_NONE;
    size_t old_len = l->value_len - 1u;
    if (!map_young_fits(m, l, value->len) || !set_code(m, pos, code, base)) return false;
    page *p = *map_page_at(m, pos);
    if (p->flags & PAGE_USES) page_set_uses(p, pos->slot, uses);
    map_young_rewrite(m, l, value->bytes, value->len);
    m->totals.expiring += code != EXPIRY_NONE;
    m->totals.expiring -= expires;
    m->totals.value_bytes += value->len;
    m->totals.value_bytes -= map_at_most(old_len, m->totals.value_bytes);
    return true;
}

/* The allocation of a record that does not live in a page. */
static large *new_large(map *m, const map_key *k, const codec_value *value, uint64_t base) {
    return value->young ? map_young_new(m, k, value->bytes, value->len, base)
                        : map_large_new(m, k, value->bytes, value->len);
}

bool map_put(map *m, map_key *k, const map_pos *pos, const codec_value *value, uint16_t code,
             uint64_t base) {
    codec_value encoded;
    if (k->len + value->len > MAP_RECORD_MAX) return false;
    if (value->young && k->len > LARGE_LONG_KEY) {
        if (!map_encode_now(m->shared, value->bytes, value->len, &encoded)) return false;
        value = &encoded;
    }
    const page_key *pk = map_encoded_key(m, k, map_codec(m));
    uint32_t index = map_index(k->hash, m->buckets);
    map_record r = {.value = value->bytes,
                    .value_len = (uint32_t)value->len,
                    .fast = value->fast,
                    .code = code,
                    .base = base,
                    .uses = add_uses(pos, k->uses)};
    map_exchange(m);
    map_size before = map_size_now(m);
    if (rewrite_young(m, pos, value, code, base, r.uses)) {
        map_tell_group(m, &before);
        return true;
    }
    if ((value->young || map_is_large(pk, value->len)) && !(r.large = new_large(m, k, value, base)))
        return false;
    bool later = pos && count_out(m, k, pos, value);
    if (!pos || !map_overwrite(m, pk, pos, &r)) {
        uint32_t slot;
        map_target to = {
            .b = map_bucket(m, index), .codec = map_codec(m), .avoid = pos ? pos->p : NULL};
        if (!map_place(m, &to, k, &r, &slot)) {
            if (r.large) m->shared->mem->free(r.large);
            if (later) uncounted_undo(m->shared);
            m->totals = before.totals;
            return false;
        }
        if (pos) take_out(m, pos);
    }
    m->shared->codecs.fast += r.fast && !r.large;
    if (r.large) map_count_large(m, r.large);
    count_in(m, k->len, value->raw_len, code);
    if (!pos) key_shapes_add(&m->shared->shapes, k->key, k->len);
    map_balance(m, index, base);
    map_tell_group(m, &before);
    return true;
}

bool map_store_code(map *m, const void *key, size_t len, const void *value, size_t value_len,
                    uint16_t code, uint64_t base) {
    map_key k;
    map_pos pos;
    codec_value encoded;
    map_key_init(m, &k, key, len);
    bool there = map_find(m, &k, &pos);
    return map_encode(m->shared, value, value_len, &encoded) &&
           map_put(m, &k, there ? &pos : NULL, &encoded, code, base);
}

bool map_store(map *m, const void *key, size_t len, const void *value, size_t value_len,
               int64_t at_ms, int64_t now_ms) {
    return map_store_code(m, key, len, value, value_len, expiry_code(at_ms, now_ms),
                          expiry_ticks(now_ms));
}

bool map_set_expiry(map *m, map_key *k, const map_pos *pos, uint16_t code, uint64_t base) {
    map_size before = map_size_now(m);
    bool expires = page_code(pos->p, pos->slot) != EXPIRY_NONE;
    if (!set_code(m, pos, code, base)) {
        if (!map_move(m, k, pos, code, base)) return false;
        map_balance(m, pos->bucket_index, base);
    }
    m->totals.expiring += code != EXPIRY_NONE;
    m->totals.expiring -= expires;
    map_tell_group(m, &before);
    return true;
}

void map_note_use(map *m, map_pos *pos) {
    uint8_t known = page_uses(pos->p, pos->slot);
    int grown = (int)page_uses_growth(pos->p);
    page **at = map_page_at(m, pos);
    map_size before = map_size_now(m);
    if (known == PAGE_USES_MAX || pos->p->used + grown > PAGE_BYTES || !map_make_room(m, at, grown))
        return;
    map_tell_group(m, &before);
    pos->p = *at;
    page_set_uses(pos->p, pos->slot, known + 1);
}

void map_delete(map *m, const map_key *k, const map_pos *pos, uint64_t now_ticks) {
    map_exchange(m);
    map_size before = map_size_now(m);
    count_out(m, k, pos, NULL);
    take_out(m, pos);
    map_balance(m, pos->bucket_index, now_ticks);
    map_tell_group(m, &before);
}
