/* codecs.c: the table of codecs. See codecs.h. */
#include "codec/codecs.h"

#include "codec/codec_file.h"

#include <string.h>

/* What was written lately fades by half every time this much has been written. Bytes. */
#define DRIFT_WINDOW (2.0 * (1 << 20))
/* What is written compresses worse than the codec's own figure by this: it was not made for it. */
#define DRIFTED 1.1
/* But so much has been written since it came into use that the next one will tell more: at least
 * this many bytes, and at least 1 in this of the data. */
#define DRIFT_WRITTEN  (8u << 20)
#define DRIFT_SHARE(n) ((n) / 4)

/* Of zstd: a long value that is moved comes from a file of a server that gave such values its
 * dictionary, and nobody is to wait long for it: half as long as for level 3. */
#define LONG_MOVED_LEVEL 1

static codec raw_codec;

void codecs_init(codecs *all, const mem *m, int zstd_level) {
    *all = (codecs){.mem = m, .zstd_level = zstd_level};
    all->by_id[CODEC_RAW] = &raw_codec;
}

void codecs_free(codecs *all) {
    for (uint32_t id = 1; id < CODECS_MAX; id++)
        if (all->by_id[id]) codec_free(all->mem, all->by_id[id]);
}

void codecs_clear(codecs *all) {
    codecs_free(all);
    codecs_init(all, all->mem, all->zstd_level);
}

void codecs_set_zstd_level(codecs *all, int zstd_level) {
    all->zstd_level = zstd_level;
}

uint32_t codecs_add(codecs *all, codec *c) {
    for (uint32_t id = 1; id < CODECS_MAX; id++) {
        if (all->by_id[id]) continue;
        all->by_id[id] = c;
        all->bytes += c->bytes;
        c->number = ++all->last_number;
        return id;
    }
    return CODECS_MAX;
}

uint32_t codecs_find(const codecs *all, const uint8_t *file, size_t len) {
    uint8_t *bytes = NULL;
    uint32_t id = 1;
    for (; id < CODECS_MAX; id++) {
        const codec *c = all->by_id[id];
        if (!c || !codec_file_is_of(c, file, len) || codec_save_size(c) != len) continue;
        if (!bytes && !(bytes = all->mem->alloc(len))) return CODECS_MAX;
        codec_save(c, bytes);
        if (!memcmp(bytes, file, len)) break;
    }
    if (bytes) all->mem->free(bytes);
    return id;
}

bool codecs_in_use(const codecs *all, uint8_t id) {
    return id == all->current ||
           (all->by_id[id] && atomic_load_explicit(&all->pages[id], memory_order_acquire) > 0);
}

void codecs_remove_unused(codecs *all) {
    for (uint32_t id = 1; id < CODECS_MAX; id++)
        if (all->by_id[id] && !all->retained[id] && !codecs_in_use(all, (uint8_t)id))
            codecs_remove(all, (uint8_t)id);
}

void codecs_remove(codecs *all, uint8_t id) {
    all->bytes -= all->by_id[id]->bytes;
    codec_free(all->mem, all->by_id[id]);
    all->by_id[id] = NULL;
}

static void count_anew(codecs *all, uint64_t data_bytes) {
    all->data_bytes = data_bytes;
    all->recent_encoded = all->recent_expected = 0;
    all->written_bytes = 0;
}

void codecs_confirm(codecs *all, uint64_t data_bytes, uint64_t written_bytes) {
    uint64_t since = all->written_bytes < written_bytes ? 0 : all->written_bytes - written_bytes;
    count_anew(all, data_bytes);
    if (all->current == CODEC_RAW) all->written_bytes = since;
}

void codecs_use(codecs *all, uint8_t id) {
    all->current = id;
    count_anew(all, all->by_id[id]->data_bytes);
}

uint32_t codecs_count(const codecs *all) {
    uint32_t count = 0;
    for (uint32_t id = 1; id < CODECS_MAX; id++) count += all->by_id[id] != NULL;
    return count;
}

size_t codecs_bytes(const codecs *all) {
    return all->bytes;
}

bool codecs_encode(const codecs *all, codec_workspace *w, const void *value, size_t n,
                   codec_value *out) {
    codec_effort effort = {CODEC_FAST, all->zstd_level};
    return codec_encode_value(codecs_current(all), w, &w->written, effort, value, n, out);
}

codec_effort codecs_effort_moved(const codecs *all) {
    return (codec_effort){CODEC_CHEAPEST, all->zstd_level};
}

bool codecs_encode_moved(const codecs *all, codec_workspace *w, const void *value, size_t n,
                         codec_value *out) {
    codec_effort effort = codecs_effort_moved(all);
    if (n > CODEC_PHRASE_MAX) effort.zstd_level = LONG_MOVED_LEVEL;
    return codec_encode_value(codecs_current(all), w, &w->moved, effort, value, n, out);
}

void codecs_note_written(codecs *all, const codec_value *value) {
    all->written_bytes += value->raw_len;
    all->recent_encoded += (double)value->len;
    all->recent_expected += value->expected_len;
    if (all->recent_expected >= DRIFT_WINDOW) {
        all->recent_encoded /= 2;
        all->recent_expected /= 2;
    }
}

double codecs_expected_len(const codecs *all, size_t n) {
    double promised = codec_expected_len(codecs_current(all), n);
    return all->recent_expected > 0 ? promised * all->recent_encoded / all->recent_expected
                                    : promised;
}

uint64_t codecs_written_bytes(const codecs *all) {
    return all->written_bytes;
}

uint64_t codecs_data_bytes(const codecs *all) {
    return all->data_bytes;
}

bool codecs_drifted(const codecs *all) {
    if (all->current == CODEC_RAW || all->written_bytes < DRIFT_WRITTEN ||
        all->written_bytes < DRIFT_SHARE(all->data_bytes))
        return false;
    return all->recent_encoded > all->recent_expected * DRIFTED;
}
