/* trial.c: see trial.h. */
#include "background/trial.h"

#include "core/base/pace.h"
#include "keyspace/maps.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_SHARE (1 / 16.0)   /* of the samples, at most */
#define KEPT_BYTES (128u << 10) /* of a kind, at most; they fit one block */

/* Records, each behind its length, of `seen` bytes of samples; and what they came to. */
static struct kept {
    uint8_t *bytes;
    size_t used;
    double seen, share;
    double raw, current, candidate;
} kept[TRIAL_KINDS];

void trial_clear(void) {
    for (int kind = 0; kind < TRIAL_KINDS; kind++) {
        free(kept[kind].bytes);
        kept[kind] = (struct kept){0};
    }
}

void trial_start(trial_kind kind, size_t expected_bytes) {
    double share = KEPT_BYTES / ((double)expected_bytes + 1);
    kept[kind].share = share < KEPT_SHARE ? share : KEPT_SHARE;
}

bool trial_keeps(trial_kind kind, const uint8_t *bytes, size_t len) {
    struct kept *k = &kept[kind];
    uint32_t prefix = (uint32_t)len;
    bool wanted = (double)k->used <= k->seen * k->share;
    k->seen += (double)len;
    if (!wanted || k->used + sizeof prefix + len > KEPT_BYTES) return false;
    if (!k->bytes && !(k->bytes = malloc(KEPT_BYTES))) return false;
    memcpy(k->bytes + k->used, &prefix, sizeof prefix);
    memcpy(k->bytes + k->used + sizeof prefix, bytes, len);
    k->used += sizeof prefix + len;
    return true;
}

/* Bytes that a codec makes of a record's key or value. */
static size_t encoded_len(const codec *c, codec_workspace *w, int zstd_level, trial_kind kind,
                          const uint8_t *bytes, size_t len) {
    codec_effort effort = {CODEC_CHEAPEST, zstd_level};
    codec_value value;
    pace_keep();
    if (kind == TRIAL_VALUE)
        return codec_encode_value(c, w, &w->moved, effort, bytes, len, &value) ? value.len : len;
    uint8_t key[MAP_KEY_MAX + 1];
    size_t got = codec_encode_key(c, bytes, len, key, sizeof key);
    return got == CODEC_NO_ROOM ? len : got;
}

bool trial_run(const codec *current, const codec *candidate, int zstd_level) {
    codec_workspace w;
    if (!workspace_init(&w, &mem_libc)) return false;
    for (trial_kind kind = 0; kind < TRIAL_KINDS; kind++) {
        struct kept *k = &kept[kind];
        uint32_t len;
        for (size_t at = 0; at < k->used; at += len) {
            memcpy(&len, k->bytes + at, sizeof len);
            const uint8_t *bytes = k->bytes + (at += sizeof len);
            k->raw += len;
            k->current += (double)encoded_len(current, &w, zstd_level, kind, bytes, len);
            k->candidate += (double)encoded_len(candidate, &w, zstd_level, kind, bytes, len);
        }
    }
    workspace_free(&w);
    return true;
}

double trial_saved(const codec *current, const codec *candidate) {
    map_totals all = maps_totals().totals;
    const double stored[TRIAL_KINDS] = {(double)all.key_bytes, (double)all.value_bytes};
    double now = (double)current->bytes, then = (double)candidate->bytes;
    for (int kind = 0; kind < TRIAL_KINDS; kind++) {
        if (kept[kind].raw == 0) continue;
        now += stored[kind] * kept[kind].current / kept[kind].raw;
        then += stored[kind] * kept[kind].candidate / kept[kind].raw;
    }
    return now > 0 ? 100 * (now - then) / now : 0;
}
