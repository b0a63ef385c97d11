/* long_values.c: see long_values.h. */
#include "transparent/long_values.h"

#include "keyspace/aside.h"
#include "keyspace/long_strings.h"
#include "keyspace/move.h"
#include "keyspace/native.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "transparent/served.h"

#include <string.h>

/* Whether a key has both in a database: the record is what is seen of it, and is to be written. */
static bool has_both(RedisModuleString *key) {
    int db = -1;
    while ((db = move_db_of_record(key, MOVE_ALL, db + 1)) >= 0) {
        RedisModule_SelectDb(ckv.ctx, db);
        if (native_exists(ckv.ctx, key)) return true;
    }
    return false;
}

/* A string that is the server's since it is changed in part: until no further piece has come for a
 * while. In a cluster replicas would have to be told of each that it is. */
static bool goes_on_changing(filtered *f, const catalogue_entry *e, int first) {
    if (strcmp(e->name, "append") != 0 && strcmp(e->name, "setrange") != 0) return false;
    size_t len;
    RedisModuleString *key = filter_arg(f, first);
    const char *name = RedisModule_StringPtrLen(key, &len);
    bool goes_on = !places_are_slots() && long_strings_have(name, len) &&
                   !move_any_record(name, len, MOVE_ALL);
    if (goes_on && prefixes_match(name, len) == PREFIX_SERVING) aside_note(key);
    return goes_on;
}

bool long_values_stay(filtered *f, const catalogue_entry *e, int argc, int first, int last,
                      int step) {
    bool one = served_keys_of(e->served) == SERVED_FIRST, any = false;
    if (!served_writes_strings(e->served) || (!one && step == 1)) return false;
    if (goes_on_changing(f, e, first)) return true;
    for (int i = first + 1; i < (one ? argc : last + 2); i += step) {
        size_t len;
        RedisModule_StringPtrLen(filter_arg(f, i), &len);
        if (len <= CODEC_ZSTD_MAX) continue;
        RedisModuleString *key = filter_arg(f, one ? first : i - 1);
        if (has_both(key)) return false;
        const char *name = RedisModule_StringPtrLen(key, &len);
        long_strings_note(name, len);
        any = true;
    }
    return any;
}
