/* rdb.c: saving and loading. The formats are in rdb.h. */
#include "persist/rdb.h"

#include "background/reencode.h"
#include "background/train.h"
#include "core/map/map_expire.h"
#include "core/map/map_save.h"
#include "keyspace/aof_form.h"
#include "keyspace/followed.h"
#include "keyspace/maps.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/relocate.h"
#include "keyspace/watched.h"
#include "persist/beside.h"
#include "persist/pages.h"
#include "persist/plain_records.h"
#include "persist/saved_codecs.h"
#include "server/clock.h"
#include "server/role.h"
#include "server/settings.h"

#include <string.h>

#define KIND_PAGES   1 /* of a file, which has the codecs */
#define KIND_RECORDS 2
#define KIND_WHOLE   3 /* pages and their codecs */
/* A map leaves the server whole from so many raw bytes on: to read 40,000 tweets of 100 bytes and
 * pack them takes 40 ms, and to store them anew on the other side as long. Smaller ones go in a
 * form that older modules know, too. */
#define WHOLE_BYTES (4u << 20)
/* So many records of each bucket of a file are to prove where a map belongs: to decode all keys
 * would take as long as loading them. */
#define COMPARED 8

/* Whether a whole file is being saved, so that the codecs are in it. Raised by the auxiliary
 * callback before the keys, in the process that saves. */
static bool saving_file;
static bool lzf_known; /* of the file: it stays as it is at its beginning */

static void begin_saving(int when) {
    saving_file = when == REDISMODULE_AUX_BEFORE_RDB;
    lzf_known = false;
}

/* While a file is loaded. */
static codec_ids file_codecs;
static bool loading_file;    /* its maps, that is: not the commands of an AOF that follow them */
static uint32_t file_layout; /* see places.h */

static void all_in_use(bool used[CODECS_MAX]) {
    for (uint32_t id = 0; id < CODECS_MAX; id++)
        used[id] = codecs_in_use(&ckv.shared.codecs, (uint8_t)id);
}

/* The oldest format that can say what some codecs are. */
static uint64_t format_of(const bool used[CODECS_MAX]) {
    uint64_t format = RDB_FORMAT_FIRST;
    for (uint32_t id = 1; id < CODECS_MAX; id++) {
        if (!used[id]) continue;
        const codec *c = codecs_get(&ckv.shared.codecs, (uint8_t)id);
        if (codec_has_kinds(c)) return RDB_FORMAT_KINDS;
        if (codec_has_copies(c)) format = RDB_FORMAT_COPIES;
    }
    return format;
}

/* Whether this module knows it; otherwise that is logged. */
static bool is_known(const char *what, int version, uint64_t format) {
    if (version <= RDB_TYPE_VERSION && format <= RDB_FORMAT) return true;
    ckv_log("warning", "%s was saved by a newer ckv (version %d, format %llu)", what, version,
            (unsigned long long)format);
    return false;
}

/* ---- auxiliary data -------------------------------------------------------------------------- */

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
    begin_saving(when);
    if (saving_file) {
        bool used[CODECS_MAX];
        all_in_use(used);
        uint64_t format = format_of(used);
        if (format == RDB_FORMAT_FIRST && prefixes_any()) format = RDB_FORMAT_PREFIXES;
        RedisModule_SaveUnsigned(io, format);
        RedisModule_SaveUnsigned(io, places_layout());
        saved_codecs_save(io, used);
        if (format >= RDB_FORMAT_PREFIXES) {
            save_prefixes(io);
            save_shapes(io);
        }
    } else
        RedisModule_SaveUnsigned(io, 0); /* whoever loads it is called when all maps are loaded */
}

void rdb_save_optional_aux(RedisModuleIO *io, int when) {
    begin_saving(when);
    bool followed = places_are_slots() && prefixes_any();
    if (maps_any() || followed) rdb_save_aux(io, when);
}

/* Records under a prefix that is not in the setting here must not be out of reach. */
static bool load_prefixes(RedisModuleIO *io) {
    size_t len;
    char *text = RedisModule_LoadStringBuffer(io, &len);
    if (!text) return false;
    followed_of_file(text, len);
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
    if (RedisModule_IsIOError(io)) return REDISMODULE_ERR;
    if (!is_known("the file", version, format)) return REDISMODULE_ERR;
    if (maps >= PLACES_NONE) {
        ckv_log("warning", "the file is damaged: its number of maps is %llu",
                (unsigned long long)maps);
        return REDISMODULE_ERR;
    }
    file_layout = (uint32_t)maps;
    loading_file = true;
    if (!saved_codecs_load(io, &file_codecs) || !load_transparent(io, format))
        return REDISMODULE_ERR;
    if (file_codecs.current != MAP_SAVE_NO_CODEC)
        codecs_use(&ckv.shared.codecs, file_codecs.current);
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
 * Where CONFIG can't be called, LZF has its way, and for a small map: to call it twice takes
 * longer.
 */
#define LZF_BYTES 4096

static bool is_lzf_on(void) {
    static bool on;
    if (!saving_file || !lzf_known) on = settings_is(ckv.ctx, "rdbcompression", "yes");
    lzf_known = true;
    return on;
}

static void set_lzf(bool on) {
    settings_set(ckv.ctx, "rdbcompression", on ? "yes" : "no");
}

/* ---- a map ----------------------------------------------------------------------------------- */

/* Not by a child, where nobody waits: what it writes is for whoever may be older, and would not be
 * told of if it were refused (an AOF, and Redis' atomic migration of slots). */
static bool goes_whole(const map *m) {
    return m->totals.key_bytes + m->totals.value_bytes >= WHOLE_BYTES &&
           !(RedisModule_GetContextFlags(ckv.ctx) & REDISMODULE_CTX_FLAGS_IS_CHILD);
}

static void save_whole(RedisModuleIO *io, map *m) {
    bool used[CODECS_MAX] = {false};
    map_note_codecs(m, used);
    used[codecs_current_id(&ckv.shared.codecs)] = true; /* who has none yet goes on with it */
    RedisModule_SaveUnsigned(io, KIND_WHOLE);
    RedisModule_SaveUnsigned(io, format_of(used));
    saved_codecs_save(io, used);
    pages_save(io, m);
}

static map *load_whole(RedisModuleIO *io) {
    codec_ids ids;
    if (!is_known("a map", RDB_TYPE_VERSION, RedisModule_LoadUnsigned(io))) return NULL;
    if (!saved_codecs_load(io, &ids)) return NULL;
    map *m = pages_load(io, ids.ours);
    if (!m) return NULL;
    if (ckv.shared.shapes.kept) map_add_shapes(m);
    if (ids.current != MAP_SAVE_NO_CODEC) train_offer(ids.current);
    return m;
}

void rdb_save_map(RedisModuleIO *io, void *value) {
    map *m = ((keyed_map *)value)->m;
    bool without_lzf = map_bytes(m) > LZF_BYTES && is_lzf_on();
    if (without_lzf) set_lzf(false);
    if (saving_file) {
        RedisModule_SaveUnsigned(io, KIND_PAGES);
        pages_save(io, m);
    } else if (goes_whole(m)) {
        save_whole(io, m);
    } else {
        RedisModule_SaveUnsigned(io, KIND_RECORDS);
        plain_records_save(io, m);
    }
    if (without_lzf) set_lzf(true);
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
    if (!(role_flags(ckv.ctx) & REDISMODULE_CTX_FLAGS_SLAVE))
        ckv.stats.file_expired += map_expired(m, clock_now_ms());
}

void *rdb_load_map(RedisModuleIO *io, int version) {
    if (!is_known("a map", version, RDB_FORMAT_FIRST)) return NULL;
    uint64_t kind = RedisModule_LoadUnsigned(io);
    map *m = NULL;
    if (RedisModule_IsIOError(io)) return NULL;
    if (kind == KIND_PAGES && loading_file)
        m = pages_load(io, file_codecs.ours);
    else if (kind == KIND_WHOLE)
        m = load_whole(io);
    else if (kind == KIND_RECORDS)
        m = plain_records_load(io);
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
        if (s->place != PLACES_NONE && maps_hidden(s->place)) watched_come(s);
    }
    return s;
}
