/* map_find.c: from a key to its record, and from a slot back to key and value. Nothing is changed
 * here. */
#include "base/siphash.h"
#include "base/stem.h"
#include "map/map_inside.h"

static const codec *codec_of(const map *m, uint8_t id) {
    return codecs_get(&m->shared->codecs, id);
}

/* ---- keys ------------------------------------------------------------------------------------ */

const page_key *map_encoded_key(const map *m, map_key *k, uint8_t codec) {
    for (int i = 0; i < 2; i++)
        if (k->encoded[i].codec == codec) return &k->encoded[i].found;
    int i = k->next;
    k->next ^= 1;
    uint8_t *stem = k->encoded[i].stem;
    size_t len = CODEC_NO_ROOM;
    if (k->len <= MAP_KEY_MAX)
        len = codec_encode_key(codec_of(m, codec), k->key, k->stem_len, stem, PAGE_KEY_MAX);
    bool fits = len != CODEC_NO_ROOM;
    k->encoded[i].codec = codec;
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
    *len = *stem_len =
        codec_decode_key(codec_of(m, p->codec), payload, encoded, bytes, MAP_KEY_MAX);
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

uint64_t map_hash_key(const map *m, const void *key, size_t len, size_t *stem_len,
                      uint8_t *suffix) {
    *stem_len = stem_split(key, len, suffix);
    return siphash13(key, *stem_len, m->secret);
}

uint64_t map_hash_large(const map *m, large *l, size_t *stem_len, uint8_t *suffix) {
    if (l->key_len <= LARGE_LONG_KEY)
        return map_hash_key(m, l->bytes, l->key_len, stem_len, suffix);
    *stem_len = stem_split(l->bytes, l->key_len, suffix);
    return large_hash(l);
}

uint8_t map_tag_of_large(const map *m, large *l) {
    size_t stem_len;
    uint8_t suffix;
    uint64_t hash = map_hash_large(m, l, &stem_len, &suffix);
    return page_single_tag(hash, suffix);
}

void map_key_init(map *m, map_key *k, const void *key, size_t len) {
    k->key = key;
    k->len = len;
    k->hash = map_hash_key(m, key, len, &k->stem_len, &k->suffix);
    k->next = k->uses = 0;
    k->encoded[0].codec = k->encoded[1].codec = -1;
    bucket *b = map_bucket(m, map_index(k->hash, m->buckets));
    __builtin_prefetch(b);
    hot_prefetch(&m->shared->hot, hot_mark(k->hash, k->suffix));
    map_encoded_key(m, k, map_codec(m));
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
        *pos = (map_pos){
            .p = pages[i], .slot = (uint32_t)slot, .page_index = i, .bucket_index = index};
        return true;
    }
    return false;
}

const uint8_t *map_encoded_value(const map_pos *pos, uint32_t *len) {
    large *l = page_large(pos->p, pos->slot);
    if (!l) return page_value(pos->p, pos->slot, len);
    *len = l->value_len;
    return large_value(l);
}

const uint8_t *map_value(map *m, const map_pos *pos, size_t *len) {
    uint32_t encoded;
    const uint8_t *src = map_encoded_value(pos, &encoded);
    return codec_decode_value(codec_of(m, pos->p->codec), &m->shared->work, src, encoded, len);
}

size_t map_value_len(map *m, const map_pos *pos) {
    uint32_t encoded;
    const uint8_t *src = map_encoded_value(pos, &encoded);
    return codec_value_len(codec_of(m, pos->p->codec), src, encoded);
}

int64_t map_expiry_ms(const map_pos *pos) {
    return expiry_ms(page_code(pos->p, pos->slot), page_base(pos->p));
}

int64_t map_expiry_told_ms(const map_pos *pos) {
    return expiry_told_ms(page_code(pos->p, pos->slot), page_base(pos->p));
}

uint8_t map_uses(const map_pos *pos) {
    return page_uses(pos->p, pos->slot);
}

uint16_t map_expiry_code(const map_pos *pos, uint64_t base) {
    return expiry_rebase(page_code(pos->p, pos->slot), page_base(pos->p), base);
}

/* ---- going over records ---------------------------------------------------------------------- */

bool map_each(map *m, uint32_t bucket_index, map_visitor *each, void *context) {
    uint8_t bytes[MAP_KEY_ROOM];
    size_t stem_len = 0, len;
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, bucket_index), &n);
    for (uint32_t i = 0; i < n; i++) {
        page *p = pages[i];
        for (uint32_t slot = 0; slot < p->slots; slot++) {
            map_pos pos = {.p = p, .slot = slot, .page_index = i, .bucket_index = bucket_index};
            large *l = page_large(p, slot);
            if (!l && !map_read_key(m, p, slot, bytes, &stem_len, &len)) continue;
            if (page_is_head(page_tags(p)[slot])) continue;
            if (!each(context, l ? l->bytes : bytes, l ? l->key_len : len, &pos)) return false;
        }
    }
    return true;
}

bool map_each_record(map *m, map_visitor *each, void *context) {
    for (uint32_t i = 0; i < m->buckets; i++)
        if (!map_each(m, i, each, context)) return false;
    return true;
}
