/* aof_form.c: in which words the AOF is told. See aof_form.h. */
#include "keyspace/aof_form.h"

#include "keyspace/maps.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "server/own_call.h"
#include "server/server_info.h"
#include "server/settings.h"

#include <string.h>

static struct {
    bool with_records; /* the file that the AOF begins with, or may */
    bool rewriting, rewriting_plain;
    bool again;            /* an AOF was loaded meanwhile */
    uint64_t base_bytes;   /* of the AOF when that began */
    bool file_had_records; /* the one that was loaded last */
    bool told_own;         /* in our own words, some time */
    uint64_t prefixes;     /* told last: their version; 0: none */
} aof;

/* What is loaded may be what the AOF begins with from now on. */
void aof_form_loading(bool from_aof) {
    aof.file_had_records = false;
    aof.prefixes = 0;
    aof.again |= from_aof && aof.rewriting;
}

void aof_form_map_loaded(void) {
    aof.file_had_records = true;
}

bool aof_form_file_had_records(void) {
    return aof.file_had_records || places_are_slots();
}

void aof_form_has_records(void) {
    aof.with_records = true;
    aof.rewriting_plain = false;
}

void aof_form_note_own(void) {
    aof.told_own = true;
}

void aof_form_prefixes_changed(void) {
    if (aof.told_own && maps_any()) aof_form_has_records();
}

/* Where CONFIG can't be called as well. */
static bool has_preamble(RedisModuleCtx *ctx) {
    return !settings_is(ctx, "aof-use-rdb-preamble", "no");
}

static bool info_says(RedisModuleCtx *ctx, const char *field, const char *wanted) {
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "persistence");
    const char *text = RedisModule_ServerInfoGetFieldC(info, field);
    bool same = text && !strcmp(text, wanted);
    RedisModule_FreeServerInfo(ctx, info);
    return same;
}

/* Of the file that the AOF begins with, when that was last written: 0 if nobody can tell. */
static uint64_t base_bytes(RedisModuleCtx *ctx) {
    return server_info_number(ctx, "persistence", "aof_base_size");
}

/* Whether the AOF has been rewritten. "ok" is what the last one that ended says: one that was
 * killed (SHUTDOWN that fails then, SIGUSR1) says nothing. */
static bool is_rewritten(RedisModuleCtx *ctx) {
    return info_says(ctx, "aof_last_bgrewrite_status", "ok") && base_bytes(ctx) != aof.base_bytes;
}

/* What an AOF makes strings of the server's own may be records in the one that is being written,
 * and what is told of them behind it goes by what they are here: until it is rewritten once more.
 */
static void rewrite_again(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    if (!(RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_AOF)) return;
    own_call_drop(own_call(ctx, "bgrewriteaof", ""));
}

/* From the fork on, what is written belongs behind the new file; if that fails, behind the old one
 * as well. */
void aof_form_fork(RedisModuleCtx *ctx, bool born) {
    aof.rewriting = false;
    if (born) {
        aof.rewriting_plain = false;
        if (!info_says(ctx, "aof_rewrite_in_progress", "1")) return;
        aof.rewriting = true;
        aof.prefixes = 0;
        aof.rewriting_plain = !has_preamble(ctx);
        aof.base_bytes = base_bytes(ctx);
        aof.told_own |= aof.rewriting_plain && maps_any();
        aof.with_records |= !aof.rewriting_plain && maps_any();
    } else if (aof.rewriting_plain) {
        aof.rewriting_plain = false;
        if (is_rewritten(ctx)) aof.with_records = false;
    }
    if (born || !aof.again) return;
    aof.again = false;
    /* Not at once: the child may have been ended by a SHUTDOWN, or with the AOF. */
    RedisModule_CreateTimer(ctx, 0, rewrite_again, NULL);
}

bool aof_form_tells_prefixes(void) {
    bool told = aof.prefixes == prefixes_version();
    aof.prefixes = prefixes_version();
    return !told;
}

bool aof_form_own(RedisModuleCtx *ctx) {
    return (aof.with_records || places_are_slots()) &&
           RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_AOF;
}
