/* map_shared.c: what all maps share. See map_shared.h. */
#include "map/map_shared.h"

bool map_shared_init(map_shared *s, const mem *m, int zstd_level) {
    *s = (map_shared){.mem = m};
    codecs_init(&s->codecs, m, zstd_level);
    return workspace_init(&s->work, m);
}

void map_shared_free(map_shared *s) {
    codecs_free(&s->codecs);
    workspace_free(&s->work);
}

void map_shared_trim(map_shared *s) {
    workspace_trim(&s->work);
}

void map_shared_clear(map_shared *s) {
    codec_workspace fresh;
    if (!workspace_init(&fresh, s->mem)) return;
    workspace_free(&s->work);
    s->work = fresh;
    codecs_clear(&s->codecs);
    key_shapes_clear(&s->shapes);
}

bool map_encode(map_shared *s, const void *value, size_t n, codec_value *out) {
    if (!young_may_be(&s->young, n)) return map_encode_now(s, value, n, out);
    *out = (codec_value){.bytes = value, .len = n, .raw_len = n, .young = true};
    return true;
}

bool map_encode_now(map_shared *s, const void *value, size_t n, codec_value *out) {
    if (!codecs_encode(&s->codecs, &s->work, value, n, out)) return false;
    codecs_note_written(&s->codecs, out);
    return true;
}
