/* rdb.c: saving and loading. The formats are in rdb.h. */
#include "persist/rdb.h"

#include "core/codec/codec_file.h"
#include "core/map/map_expire.h"
#include "core/map/map_save.h"
#include "background/reencode.h"
#include "keyspace/aof_form.h"
#include "keyspace/maps.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "persist/beside.h"
#include "persist/records.h"
#include "keyspace/relocate.h"
#include "server/clock.h"
#include "server/own_call.h"

#include <string.h>

#define KIND_PAGES   1
#define KIND_RECORDS 2
/* Buckets are written in pieces of about this many bytes. */
#define PIECE_BYTES (256u << 10)
/* So many records of each bucket of a file are to prove where a map belongs: to decode all keys
 * would take as long as loading them. */
#define COMPARED 8

/* Whether a whole file is being saved, so that the codecs are in it. Raised by the auxiliary
 * callback before the keys, in the process that saves. */
static bool saving_file;

/* While a file is loaded: from its ids of codecs to ours. */
static uint8_t codec_ids[256];
static bool loading_file;    /* its maps, that is: not the commands of an AOF that follow them */
static uint32_t file_layout; /* see places.h */

/* ---- auxiliary data -------------------------------------------------------------------------- */

/* The oldest format that can say what is to be saved. */
static uint64_t format_needed(void) {
    const codecs *all = &ckv.shared.codecs;
    uint64_t format = prefixes_any() ? RDB_FORMAT_PREFIXES : RDB_FORMAT_FIRST;
    for (uint32_t i = 1; i < CODECS_MAX; i++) {
        if (!codecs_in_use(all, (uint8_t)i)) continue;
        const codec *c = codecs_get(all, (uint8_t)i);
        if (codec_has_kinds(c)) return RDB_FORMAT_KINDS;
        if (codec_has_copies(c)) format = RDB_FORMAT_COPIES;
    }
    return format;
}

static void save_codecs(RedisModuleIO *io) {
    const codecs *all = &ckv.shared.codecs;
    uint8_t used[CODECS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 1; i < CODECS_MAX; i++)
        if (codecs_in_use(all, (uint8_t)i)) used[count++] = (uint8_t)i;
    RedisModule_SaveUnsigned(io, places_layout());
    RedisModule_SaveUnsigned(io, codecs_current_id(all));
    RedisModule_SaveUnsigned(io, count);
    for (uint32_t i = 0; i < count; i++) {
        const codec *c = codecs_get(all, used[i]);
        size_t bytes = codec_save_size(c);
        uint8_t *copy = RedisModule_Alloc(bytes);
        codec_save(c, copy);
        RedisModule_SaveUnsigned(io, used[i]);
        RedisModule_SaveStringBuffer(io, (char *)copy, bytes);
        RedisModule_Free(copy);
    }
}

static void save_prefixes(RedisModuleIO *io) {
    char *text = prefixes_all();
    RedisModule_SaveStringBuffer(io, text, strlen(text));
    RedisModule_Free(text);
}

/* Pages do not tell their keys. */
static void save_shapes(RedisModuleIO *io) {
    const uint8_t *bytes;
    size_t n = key_shapes_save(&ckv.shared.shapes, &bytes);
    RedisModule_SaveStringBuffer(io, (const char *)bytes, n);
}

void rdb_save_aux(RedisModuleIO *io, int when) {
    saving_file = when == REDISMODULE_AUX_BEFORE_RDB;
    if (saving_file) {
        uint64_t format = format_needed();
        RedisModule_SaveUnsigned(io, format);
        save_codecs(io);
        if (format >= RDB_FORMAT_PREFIXES) {
            save_prefixes(io);
            save_shapes(io);
        }
    } else
        RedisModule_SaveUnsigned(io, 0); /* whoever loads it is called when all maps are loaded */
}

void rdb_save_optional_aux(RedisModuleIO *io, int when) {
    saving_file = when == REDISMODULE_AUX_BEFORE_RDB;
    if (maps_any()) rdb_save_aux(io, when);
}

/* The id of a codec of the file: it may be here already, after DEBUG RELOAD for one. CODECS_MAX: it
 * is damaged, or out of memory or ids. */
static uint32_t add_codec(const uint8_t *bytes, size_t n) {
    codecs *all = &ckv.shared.codecs;
    uint32_t id = codecs_find(all, bytes, n);
    if (id != CODECS_MAX) return id;
    codec *c = codec_load(&ckv.mem, bytes, n, (int)ckv.config.compression_level);
    if (c && (id = codecs_add(all, c)) == CODECS_MAX) codec_free(&ckv.mem, c);
    return id;
}

static bool load_codec(RedisModuleIO *io) {
    uint64_t from = RedisModule_LoadUnsigned(io);
    size_t n;
    char *bytes = RedisModule_LoadStringBuffer(io, &n);
    if (!bytes) return false;
    bool known = from > 0 && from < CODECS_MAX;
    uint32_t id = known ? add_codec((uint8_t *)bytes, n) : CODECS_MAX;
    RedisModule_Free(bytes);
    if (id == CODECS_MAX) return false;
    codec_ids[from] = (uint8_t)id;
    return true;
}

/* Records under a prefix that is not in the setting here must not be out of reach. */
static bool load_prefixes(RedisModuleIO *io) {
    size_t len;
    char *text = RedisModule_LoadStringBuffer(io, &len);
    if (!text) return false;
    prefixes_add_of_file(text, len);
    RedisModule_Free(text);
    return true;
}

static bool load_shapes(RedisModuleIO *io) {
    size_t n;
    char *bytes = RedisModule_LoadStringBuffer(io, &n);
    bool done = bytes && key_shapes_load(&ckv.shared.shapes, (const uint8_t *)bytes, n);
    if (bytes) RedisModule_Free(bytes);
    return done;
}

/* What of a file is about transparent mode. Before there was that, shapes were not kept. */
static bool load_transparent(RedisModuleIO *io, uint64_t format) {
    if (format < RDB_FORMAT_PREFIXES) return key_shapes_load(&ckv.shared.shapes, NULL, 0);
    return load_prefixes(io) && load_shapes(io);
}

static int load_end(RedisModuleIO *io) {
    RedisModule_LoadUnsigned(io);
    loading_file = false;
    /* Beside what is served they are not in the keyspace yet. */
    bool in_place = beside_loading() || relocate_all();
    return !RedisModule_IsIOError(io) && in_place ? REDISMODULE_OK : REDISMODULE_ERR;
}

int rdb_load_aux(RedisModuleIO *io, int version, int when) {
    if (when != REDISMODULE_AUX_BEFORE_RDB) return load_end(io);
    uint64_t format = RedisModule_LoadUnsigned(io), maps = RedisModule_LoadUnsigned(io);
    uint64_t current = RedisModule_LoadUnsigned(io), count = RedisModule_LoadUnsigned(io);
    if (RedisModule_IsIOError(io)) return REDISMODULE_ERR;
    if (version > RDB_TYPE_VERSION || format > RDB_FORMAT) {
        ckv_log("warning", "the file was saved by a newer ckv (format %llu)",
                (unsigned long long)format);
        return REDISMODULE_ERR;
    }
    file_layout = (uint32_t)maps;
    memset(codec_ids, MAP_SAVE_NO_CODEC, sizeof codec_ids);
    codec_ids[CODEC_RAW] = CODEC_RAW;
    loading_file = true;
    for (uint64_t i = 0; i < count; i++) {
        if (load_codec(io)) continue;
        ckv_log("warning", "a dictionary of the file is damaged");
        return REDISMODULE_ERR;
    }
    if (!load_transparent(io, format)) return REDISMODULE_ERR;
    if (current < CODECS_MAX && codec_ids[current] != MAP_SAVE_NO_CODEC)
        codecs_use(&ckv.shared.codecs, codec_ids[current]);
    return REDISMODULE_OK;
}

void rdb_saving_ended(void) {
    saving_file = false;
}

void rdb_loading_began(void) {
    ckv.stats.file_maps = ckv.stats.file_records = ckv.stats.file_expired = 0;
}

void rdb_loading_ended(void) {
    loading_file = false;
    relocate_forget();
    reencode_start(); /* also frees the codecs that nothing of it uses */
}

/* ---- LZF ------------------------------------------------------------------------------------- */

/*
 * The server runs LZF over every string that a module saves (rdbcompression, on by default).
 * Neither pages nor what zstd has packed shrink under it, and it takes longer than all the rest.
 * There is no way to save bytes around it, so it is switched off while a map is written, in the
 * process that writes it, and on again behind it: other keys are compressed as the user wishes.
 * Where CONFIG can't be called, LZF has its way. Returns whether it was on.
 */
static bool set_lzf(bool on) {
    RedisModuleCallReply *reply = own_call(ckv.ctx, "CONFIG", "cc", "GET", "rdbcompression");
    size_t len = 0;
    const char *text = "";
    RedisModuleCallReply *value = reply ? RedisModule_CallReplyArrayElement(reply, 1) : NULL;
    if (value) text = RedisModule_CallReplyStringPtr(value, &len);
    bool was_on = len == 3 && !memcmp(text, "yes", 3);
    if (reply) RedisModule_FreeCallReply(reply);
    if (was_on == on) return was_on;
    reply = own_call(ckv.ctx, "CONFIG", "ccc", "SET", "rdbcompression", on ? "yes" : "no");
    if (reply) RedisModule_FreeCallReply(reply);
    return was_on;
}

/* ---- pages ----------------------------------------------------------------------------------- */

typedef struct saving {
    RedisModuleIO *io;
    uint64_t larges;
} saving;

static bool count_large(void *context, large **l) {
    (void)l;
    ((saving *)context)->larges++;
    return true;
}

static bool save_large(void *context, large **at) {
    size_t n = map_large_size(*at);
    uint8_t *copy = RedisModule_Alloc(n);
    map_large_save(*at, copy);
    RedisModule_SaveStringBuffer(((saving *)context)->io, (char *)copy, n);
    RedisModule_Free(copy);
    return true;
}

/* Writes buckets from `first` until a piece is full; returns the next one. */
static uint32_t save_piece(RedisModuleIO *io, map *m, uint32_t first, uint8_t *piece) {
    size_t used = 0;
    uint32_t end = first;
    saving s = {.io = io};
    while (end < m->buckets && (end == first || used + map_bucket_size(m, end) <= PIECE_BYTES)) {
        used += map_bucket_save(m, end, piece + used);
        map_each_large(m, end, count_large, &s);
        end++;
    }
    RedisModule_SaveUnsigned(io, end - first);
    RedisModule_SaveUnsigned(io, s.larges);
    RedisModule_SaveStringBuffer(io, (char *)piece, used);
    for (uint32_t i = first; i < end; i++) map_each_large(m, i, save_large, &s);
    return end;
}

static void save_pages(RedisModuleIO *io, map *m) {
    size_t room = PIECE_BYTES;
    for (uint32_t i = 0; i < m->buckets; i++) {
        size_t bytes = map_bucket_size(m, i);
        if (bytes > room) room = bytes;
    }
    uint8_t *piece = RedisModule_Alloc(room);
    RedisModule_SaveUnsigned(io, KIND_PAGES);
    uint64_t head[MAP_HEAD];
    map_save_head(m, head);
    for (int i = 0; i < MAP_HEAD; i++) RedisModule_SaveUnsigned(io, head[i]);
    for (uint32_t i = 0; i < m->buckets;) i = save_piece(io, m, i, piece);
    RedisModule_Free(piece);
}

typedef struct loading {
    RedisModuleIO *io;
    map *m;
} loading;

static bool load_large(void *context, large **at) {
    loading *l = context;
    size_t n;
    char *bytes = RedisModule_LoadStringBuffer(l->io, &n);
    if (!bytes) return false;
    *at = map_large_load(l->m, (uint8_t *)bytes, n);
    RedisModule_Free(bytes);
    return *at != NULL;
}

/* Reads a piece; the number of buckets in it, 0 if it is damaged. */
static uint32_t load_piece(loading *l, uint32_t first, uint32_t buckets) {
    uint64_t count = RedisModule_LoadUnsigned(l->io), larges = RedisModule_LoadUnsigned(l->io);
    size_t n, at = 0, read = 1;
    (void)larges; /* for readers of the file that have no pages to count them in */
    char *piece = RedisModule_LoadStringBuffer(l->io, &n);
    if (!piece || count == 0 || count > buckets - first) {
        if (piece) RedisModule_Free(piece);
        return 0;
    }
    for (uint32_t i = 0; i < count && read; i++) {
        read = map_bucket_load(l->m, first + i, (uint8_t *)piece + at, n - at, codec_ids);
        at += read;
    }
    RedisModule_Free(piece);
    for (uint32_t i = 0; i < count && read; i++)
        if (!map_each_large(l->m, first + i, load_large, l)) read = 0;
    return read && at == n ? (uint32_t)count : 0;
}

static map *load_pages(RedisModuleIO *io) {
    uint64_t head[MAP_HEAD];
    for (int i = 0; i < MAP_HEAD; i++) head[i] = RedisModule_LoadUnsigned(io);
    if (RedisModule_IsIOError(io)) return NULL;
    loading l = {io, map_load_head(&ckv.shared, head)};
    uint32_t buckets = (uint32_t)head[2];
    for (uint32_t i = 0, read; l.m && i < buckets; i += read) {
        read = load_piece(&l, i, buckets);
        if (read) continue;
        map_free(l.m);
        l.m = NULL;
    }
    if (l.m) map_load_end(l.m, head);
    return l.m;
}

/* ---- a map ----------------------------------------------------------------------------------- */

void rdb_save_map(RedisModuleIO *io, void *value) {
    map *m = ((keyed_map *)value)->m;
    bool lzf = set_lzf(false);
    if (saving_file) {
        save_pages(io, m);
    } else {
        RedisModule_SaveUnsigned(io, KIND_RECORDS);
        records_save(io, m);
    }
    if (lzf) set_lzf(true);
}

/* The home of a map of a file of another layout. If it served its records there, they are to be put
 * in place. Otherwise it was inert, and stays so under the name that it has. */
static uint32_t home_in_other_layout(map *m, const RedisModuleString *name, bool *misplaced) {
    uint32_t named = places_of_name_in(name, file_layout);
    *misplaced = named != PLACES_NONE && named == places_of_map(m, file_layout, COMPARED);
    if (*misplaced) return PLACES_NONE;
    uint32_t home = places_of_map(m, places_layout(), UINT64_MAX);
    return home == places_of_name(name) ? PLACES_NONE : home;
}

/* The home of a map that has been loaded. */
static uint32_t home_of_loaded(map *m, bool of_file, const RedisModuleString *name,
                               bool *misplaced) {
    *misplaced = false;
    if (of_file && file_layout != places_layout()) return home_in_other_layout(m, name, misplaced);
    return places_of_map(m, places_layout(), of_file ? COMPARED : UINT64_MAX);
}

/* The server leaves out what has expired when it loads a file, unless it has a primary. */
static void note_loaded(map *m) {
    ckv.stats.file_maps++;
    ckv.stats.file_records += m->totals.records;
    if (!(RedisModule_GetContextFlags(ckv.ctx) & REDISMODULE_CTX_FLAGS_SLAVE))
        ckv.stats.file_expired += map_expired(m, clock_now_ms());
}

void *rdb_load_map(RedisModuleIO *io, int version) {
    if (version > RDB_TYPE_VERSION) {
        ckv_log("warning", "a map was saved by a newer ckv (version %d)", version);
        return NULL;
    }
    uint64_t kind = RedisModule_LoadUnsigned(io);
    map *m = NULL;
    if (RedisModule_IsIOError(io)) return NULL;
    if (kind == KIND_PAGES && loading_file)
        m = load_pages(io);
    else if (kind == KIND_RECORDS)
        m = records_load(io);
    if (!m) {
        ckv_log("warning", "a map is damaged, or was cut out of its file");
        return NULL;
    }
    /* Of a file, or by RESTORE, which has none and may come while one is loaded; if that is refused
     * after all, the map is freed. */
    bool of_file = kind == KIND_PAGES;
    const RedisModuleString *name = RedisModule_GetKeyNameFromIO(io);
    int db = RedisModule_GetDbIdFromIO(io);
    bool misplaced, beside = of_file && beside_loading();
    keyed_map *s = maps_wrap(m, home_of_loaded(m, of_file, name, &misplaced));
    if (beside) {
        beside_note(name, misplaced);
    } else {
        if (misplaced) relocate_later(db, name);
        maps_list(s, db, name);
    }
    if (of_file) {
        aof_form_map_loaded();
        note_loaded(m);
    } else if (m->totals.records > 0) {
        aof_form_has_records();
        if (s->home != PLACES_NONE) prefixes_remember(m);
    }
    return s;
}
