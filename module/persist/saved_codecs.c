/* saved_codecs.c: see saved_codecs.h. */
#include "persist/saved_codecs.h"

#include "core/codec/codec_file.h"
#include "core/map/map_save.h"

#include <string.h>

static void save_one(RedisModuleIO *io, uint32_t id) {
    const codec *c = codecs_get(&ckv.shared.codecs, (uint8_t)id);
    size_t bytes = codec_save_size(c);
    uint8_t *copy = RedisModule_Alloc(bytes);
    codec_save(c, copy);
    RedisModule_SaveUnsigned(io, id);
    RedisModule_SaveStringBuffer(io, (char *)copy, bytes);
    RedisModule_Free(copy);
}

void saved_codecs_save(RedisModuleIO *io, const bool wanted[CODECS_MAX]) {
    uint32_t count = 0;
    for (uint32_t id = 1; id < CODECS_MAX; id++) count += wanted[id];
    RedisModule_SaveUnsigned(io, codecs_current_id(&ckv.shared.codecs));
    RedisModule_SaveUnsigned(io, count);
    for (uint32_t id = 1; id < CODECS_MAX; id++)
        if (wanted[id]) save_one(io, id);
}

/* The id that a codec has here: it may be there already, after DEBUG RELOAD for one. CODECS_MAX: it
 * is damaged, or out of memory or ids. */
static uint32_t add(const uint8_t *bytes, size_t n) {
    codecs *all = &ckv.shared.codecs;
    uint32_t id = codecs_find(all, bytes, n);
    if (id != CODECS_MAX) return id;
    codec *c = codec_load(&ckv.mem, bytes, n, (int)ckv.config.compression_level);
    if (c && (id = codecs_add(all, c)) == CODECS_MAX) codec_free(&ckv.mem, c);
    return id;
}

static bool load_one(RedisModuleIO *io, codec_ids *ids) {
    uint64_t from = RedisModule_LoadUnsigned(io);
    size_t n;
    char *bytes = RedisModule_LoadStringBuffer(io, &n);
    if (!bytes) return false;
    bool known = from > 0 && from < CODECS_MAX;
    uint32_t id = known ? add((uint8_t *)bytes, n) : CODECS_MAX;
    RedisModule_Free(bytes);
    if (id == CODECS_MAX) return false;
    ids->ours[from] = (uint8_t)id;
    return true;
}

bool saved_codecs_load(RedisModuleIO *io, codec_ids *ids) {
    uint64_t current = RedisModule_LoadUnsigned(io), count = RedisModule_LoadUnsigned(io);
    if (RedisModule_IsIOError(io)) return false;
    memset(ids->ours, MAP_SAVE_NO_CODEC, sizeof ids->ours);
    ids->ours[CODEC_RAW] = CODEC_RAW;
    for (uint64_t i = 0; i < count; i++) {
        if (load_one(io, ids)) continue;
        ckv_log("warning", "a dictionary is damaged, or there is no room for it");
        return false;
    }
    ids->current = current < CODECS_MAX ? ids->ours[current] : MAP_SAVE_NO_CODEC;
    return true;
}
