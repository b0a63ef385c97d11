/* map_shared.c: what all maps share. See map_shared.h. */
#include "map/map_shared.h"

/* Of what young values may take: new ones do not wait for room, mostly. */
#define HOT_SHARE(limit) ((limit) / 4 * 3)
/* Of what the records take, or so much: who reads is not to take back what compressing saves. */
#define HOT_SHARE_STORED(bytes) ((bytes) / 4)
#define HOT_STORED_MIN          (256u << 10)

bool map_shared_init(map_shared *s, const mem *m, int zstd_level) {
    *s = (map_shared){.mem = m};
    codecs_init(&s->codecs, m, zstd_level);
    hot_init(&s->hot, m);
    return workspace_init(&s->work, m);
}

void map_shared_free(map_shared *s) {
    if (s->uncounted.open) mem_libc.free(s->uncounted.open);
    hot_clear(&s->hot);
    codecs_free(&s->codecs);
    workspace_free(&s->work);
}

void map_shared_trim(map_shared *s) {
    workspace_trim(&s->work);
}

size_t map_shared_shrink(map_shared *s) {
    return workspace_shrink(&s->work);
}

void map_shared_clear(map_shared *s) {
    workspace_rest(&s->work);
    codecs_clear(&s->codecs);
    key_shapes_clear(&s->shapes);
}

void map_shared_keep_hot(map_shared *s, uint64_t stored) {
    uint64_t share = HOT_SHARE_STORED(stored), young_share = HOT_SHARE(s->young.limit);
    if (share < HOT_STORED_MIN) share = HOT_STORED_MIN;
    if (share > young_share) share = young_share;
    s->hot.limit = stored > 0 ? share : 0;
}

/* For a value that may be young. */
static void make_room(map_shared *s, size_t n) {
    uint64_t wanted = s->young.bytes + s->hot.bytes + n + YOUNG_EXTRA;
    if (young_may_be(&s->young, n) && wanted > s->young.limit)
        hot_make_room(&s->hot, wanted - s->young.limit, n + YOUNG_EXTRA);
}

bool map_make_young_room(map_shared *s, size_t n) {
    make_room(s, n);
    return young_has_room(&s->young, n, s->hot.bytes);
}

bool map_encode(map_shared *s, const void *value, size_t n, codec_value *out) {
    make_room(s, n);
    if (!young_may_be(&s->young, n)) return map_encode_now(s, value, n, out);
    if (!young_has_room(&s->young, n, s->hot.bytes)) {
        s->young.at_once++;
        return map_encode_now(s, value, n, out);
    }
    *out = (codec_value){.bytes = value, .len = n, .raw_len = n, .young = true};
    return true;
}

bool map_encode_now(map_shared *s, const void *value, size_t n, codec_value *out) {
    if (!codecs_encode(&s->codecs, &s->work, value, n, out)) return false;
    codecs_note_written(&s->codecs, out);
    return true;
}
