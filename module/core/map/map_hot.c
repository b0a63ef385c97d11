/* map_hot.c: reading values as those do who read them often; see hot.h. */
#include "map/map_inside.h"

/* What hot values may take, as young ones leave room for them. */
static uint64_t room(const map_shared *s) {
    const young_state *young = &s->young;
    uint64_t left = young->bytes < young->limit ? young->limit - young->bytes : 0;
    return map_at_most(s->hot.limit, left);
}

/* What a record's value would be kept as. False: it would not be. */
static bool key_of(const map *m, const map_key *k, const map_pos *pos, hot_key *key) {
    uint32_t len;
    const uint8_t *encoded = map_encoded_value(pos, &len);
    const codec *with = codecs_get(&m->shared->codecs, pos->p->codec);
    *key = (hot_key){hot_mark(k->hash, k->suffix), with ? with->number : 0, encoded, len};
    return with && len >= HOT_ENCODED_MIN && encoded[0] != CODEC_RAW_BYTE;
}

const uint8_t *map_read(map *m, const map_key *k, const map_pos *pos, size_t *len) {
    hot_values *hot = &m->shared->hot;
    hot_key key;
    if (!key_of(m, k, pos, &key)) return map_value(m, pos, len);
    const uint8_t *value = hot_find(hot, &key, len);
    if (value) return value;
    value = map_value(m, pos, len);
    if (value && young_is_long(*len)) hot_note(hot, &key, value, *len, room(m->shared));
    return value;
}

bool map_forget_hot(map *m, const map_key *k, const map_pos *pos, size_t *len) {
    hot_key key;
    return key_of(m, k, pos, &key) && hot_take(&m->shared->hot, &key, len);
}
