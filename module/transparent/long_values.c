/* long_values.c: see long_values.h. */
#include "transparent/long_values.h"

#include "keyspace/long_strings.h"
#include "keyspace/move.h"
#include "keyspace/native.h"
#include "transparent/served.h"

/* Whether a key has both in a database: the record is what is seen of it, and is to be written. */
static bool has_both(RedisModuleString *key) {
    int db = -1;
    while ((db = move_db_of_record(key, MOVE_ALL, db + 1)) >= 0) {
        RedisModule_SelectDb(ckv.ctx, db);
        if (native_exists(ckv.ctx, key)) return true;
    }
    return false;
}

bool long_values_stay(filtered *f, const catalogue_entry *e, int argc, int first, int last,
                      int step) {
    bool one = served_keys_of(e->served) == SERVED_FIRST, any = false;
    if (!served_writes_strings(e->served) || (!one && step == 1)) return false;
    for (int i = first + 1; i < (one ? argc : last + 2); i += step) {
        size_t len;
        RedisModuleString *key = filter_arg(f, one ? first : i - 1);
        RedisModule_StringPtrLen(filter_arg(f, i), &len);
        if (len <= CODEC_ZSTD_MAX) continue;
        if (has_both(key)) return false;
        const char *name = RedisModule_StringPtrLen(key, &len);
        long_strings_note(name, len);
        any = true;
    }
    return any;
}
