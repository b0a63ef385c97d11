/* map_hot.c: reading values as those do who read them often; see hot.h. */
#include "map/map_inside.h"

/* What hot values may take, as young ones leave room for them. */
static uint64_t room(const map_shared *s) {
    uint64_t young = young_bytes(&s->young);
    uint64_t left = young < s->young.limit ? s->young.limit - young : 0;
    return map_at_most(s->hot.limit, left);
}

const uint8_t *map_read(map *m, const map_key *k, const map_pos *pos, size_t *len) {
    map_shared *s = m->shared;
    uint32_t encoded;
    const uint8_t *src = map_encoded_value(pos, &encoded);
    const codec *with = codecs_get(&s->codecs, pos->p->codec);
    if (encoded < HOT_ENCODED_MIN || src[0] == CODEC_RAW_BYTE || !with)
        return codec_decode_value(with, &s->work, src, encoded, len);
    hot_key key = {hot_mark(k->hash, k->suffix), with->number, src, encoded};
    const uint8_t *value = hot_find(&s->hot, &key, len);
    if (value) return value;
    value = codec_decode_value(with, &s->work, src, encoded, len);
    if (value && young_is_long(*len)) hot_note(&s->hot, &key, value, *len, room(s));
    return value;
}
