/* map_move.c: records on their way from one page to another, as they are. */
#include "base/siphash.h"
#include "base/stem.h"
#include "map/map_inside.h"

#include <string.h>

/* ---- keys ------------------------------------------------------------------------------------ */

static void read_large(map_keys *keys, const page *p, large *l) {
    map_key *k = &keys->key;
    *k = (map_key){.key = l->bytes, .len = l->key_len};
    k->hash = map_hash_large(keys->m, l, &k->stem_len, &k->suffix);
    /* No page of its codec will ask for the stem. */
    k->encoded[0].codec = p->codec;
    k->encoded[0].found = (page_key){k->key, k->len, k->hash, k->suffix, 0, NULL};
    k->encoded[1].codec = -1;
}

/* The key of a single, or the stem of a head. */
static void read_stem(map_keys *keys, const page *p, const page_walk *at) {
    map_key *k = &keys->key;
    *k = (map_key){.key = keys->bytes,
                   .len = keys->stem_len,
                   .stem_len = keys->stem_len,
                   .suffix = STEM_NO_SUFFIX};
    k->hash = siphash13(keys->bytes, keys->stem_len, keys->m->secret);
    const uint8_t *payload = at->payload;
    uint8_t len = page_is_head(at->tag) ? (uint8_t)at->len : *payload++;
    memcpy(k->encoded[0].stem, payload, len);
    k->encoded[0].codec = p->codec;
    k->encoded[0].found =
        (page_key){k->key, k->len, k->hash, STEM_NO_SUFFIX, len, k->encoded[0].stem};
    k->encoded[1].codec = -1;
}

static void set_suffix(map_key *k, uint8_t suffix) {
    k->suffix = suffix;
    k->len = k->stem_len + STEM_DIGITS;
    for (int i = 0; i < 2; i++) {
        k->encoded[i].found.suffix = suffix;
        k->encoded[i].found.key_len = k->len;
    }
}

bool map_keys_read(map_keys *keys, const page_walk *at) {
    large *l = page_large(at->p, at->slot);
    size_t len;
    if (l) {
        read_large(keys, at->p, l);
        return true;
    }
    if (!map_read_key(keys->m, at->p, at->slot, keys->bytes, &keys->stem_len, &len)) return false;
    if (page_is_member(at->tag))
        set_suffix(&keys->key, at->tag);
    else
        read_stem(keys, at->p, at);
    return true;
}

/* ---- one record ------------------------------------------------------------------------------ */

void map_remove_slot(map *m, const map_pos *pos) {
    page *p = pos->p;
    page_delete(p, pos->slot);
    if (p->slots == 0)
        map_remove_page(m, map_bucket(m, pos->bucket_index), pos->page_index, NULL);
    else
        map_trim_page(m, map_page_at(m, pos));
}

bool map_move(map *m, map_key *k, const map_pos *pos, uint16_t code, uint64_t base) {
    map_record r = {.large = page_large(pos->p, pos->slot),
                    .fast = pos->p->flags & PAGE_FAST,
                    .code = code,
                    .base = base,
                    .uses = page_uses(pos->p, pos->slot)};
    if (!r.large) r.value = page_value(pos->p, pos->slot, &r.value_len);
    map_target to = {
        .b = map_bucket(m, pos->bucket_index), .codec = pos->p->codec, .avoid = pos->p};
    uint32_t slot;
    if (!map_place(m, &to, k, &r, &slot)) return false;
    map_remove_slot(m, pos);
    return true;
}
