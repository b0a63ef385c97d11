/* info.c: the figures of INFO ckv and CKV STATS. See info.h. */
#include "info.h"

#include "background/mover.h"
#include "background/rates.h"
#include "background/reencode.h"
#include "background/train.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "keyspace/prefixes.h"
#include "server/clock.h"

#include <assert.h>

typedef struct figure {
    const char *name;
    bool fraction;
    long long count;
    double value;     /* if it is a fraction */
    const char *text; /* NULL: it is a number */
} figure;

#define FIGURES_MAX 64

typedef struct figures {
    figure all[FIGURES_MAX];
    int count;
} figures;

static figure *next(figures *f) {
    assert(f->count < FIGURES_MAX);
    return &f->all[f->count++];
}

#define COUNT(name, value)                                                                         \
    *next(f) = (figure) {                                                                          \
        name, false, (long long)(value), 0, NULL                                                   \
    }
#define FRACTION(name, value)                                                                      \
    *next(f) = (figure) {                                                                          \
        name, true, 0, value, NULL                                                                 \
    }
#define TEXT(name, text)                                                                           \
    *next(f) = (figure) {                                                                          \
        name, false, 0, 0, text                                                                    \
    }

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

static double percent(const mover_progress *p) {
    return 100 * ratio((double)p->looked_at, (double)p->keys);
}

static void add_records(figures *f, const map_totals *t) {
    COUNT("records", t->records);
    COUNT("records_with_expiry", t->expiring);
    COUNT("raw_key_bytes", t->key_bytes);
    COUNT("raw_value_bytes", t->value_bytes);
    COUNT("page_bytes", t->page_bytes);
    COUNT("large_records", t->large);
    COUNT("large_bytes", t->large_bytes);
}

static void add_young_and_hot(figures *f, const map_totals *t) {
    COUNT("young_records", t->young);
    COUNT("young_bytes", t->young_bytes);
    COUNT("young_limit", ckv.shared.young.limit);
    COUNT("young_encoded", ckv.shared.young.settled);
    FRACTION("young_encoded_per_second", rates_now().encoded);
    COUNT("young_never_encoded", ckv.shared.young.spared);
    COUNT("encoded_at_once", ckv.shared.young.at_once);
    COUNT("young_reads", ckv.shared.young.read);
    COUNT("hot_records", ckv.shared.hot.count);
    COUNT("hot_bytes", ckv.shared.hot.bytes);
    COUNT("hot_reads", ckv.shared.hot.read);
}

static void add_codecs(figures *f, const map_totals *t) {
    const codecs *all = &ckv.shared.codecs;
    const codec *current = codecs_current(all);
    double stored = (double)map_record_bytes(t), bytes = (double)codecs_bytes(all);
    double raw = (double)(t->key_bytes + t->value_bytes);
    FRACTION("bytes_per_record", ratio(stored + bytes, (double)t->records));
    FRACTION("compression_ratio", ratio(raw, stored));
    COUNT("dictionaries", codecs_count(all));
    COUNT("dictionary_bytes", codecs_bytes(all));
    COUNT("value_kinds", codec_kinds(current));
    COUNT("dictionary_age_seconds",
          codecs_current_id(all) ? (clock_now_ms() - current->made_ms) / 1000 : 0);
    COUNT("trainings", ckv.stats.trainings);
    COUNT("training", train_running());
    COUNT("pages_to_reencode", reencode_pages_ahead());
}

static void add_removals(figures *f, const map_totals *t) {
    COUNT("expired_records", ckv.stats.expired);
    FRACTION("expired_per_second", rates_now().expired);
    FRACTION("expired_share", ckv.stats.expired_share);
    FRACTION("expire_seconds", (double)ckv.stats.expire_us / 1e6);
    COUNT("evicted_records", ckv.stats.evicted);
    FRACTION("evicted_per_second", rates_now().evicted);
    FRACTION("eviction_age_seconds", ratio((double)t->records, rates_now().evicted));
    COUNT("evicted_other_keys", ckv.stats.evicted_keys);
    COUNT("maxmemory_in_force", maxmemory_now()->server_limit + maxmemory_raised());
}

static void add_maps(figures *f, const map_group *sum) {
    map_group unserved = maps_totals_unserved();
    COUNT("maps", sum->maps);
    COUNT("unserved_maps", unserved.maps);
    COUNT("unserved_bytes", map_record_bytes(&unserved.totals));
    COUNT("migrations_refused", ckv.stats.migrations_refused);
    COUNT("buckets", sum->buckets);
    COUNT("pages", sum->totals.pages);
    COUNT("defrag_moved", ckv.stats.defrag_moved);
    COUNT("longest_slice_us", ckv.stats.longest_slice_us);
}

static void add_moves(figures *f) {
    mover_progress in = mover_progress_of(MOVER_IN), out = mover_progress_of(MOVER_OUT);
    TEXT("prefixes", prefixes_text(PREFIX_SERVING));
    TEXT("prefixes_leaving", prefixes_text(PREFIX_LEAVING));
    COUNT("moved_in", ckv.stats.moved_in);
    COUNT("moved_out", ckv.stats.moved_out);
    TEXT("moving_in", in.state);
    FRACTION("moving_in_percent", percent(&in));
    TEXT("moving_out", out.state);
    FRACTION("moving_out_percent", percent(&out));
    FRACTION("moving_seconds_left", in.seconds_left + out.seconds_left);
    COUNT("moving_left", in.left);
    COUNT("moving_saved_bytes", in.saved_bytes);
}

static void gather(figures *f) {
    map_group sum = maps_totals();
    f->count = 0;
    add_records(f, &sum.totals);
    add_young_and_hot(f, &sum.totals);
    add_codecs(f, &sum.totals);
    add_removals(f, &sum.totals);
    COUNT("hits", ckv.stats.hits);
    COUNT("misses", ckv.stats.misses);
    add_maps(f, &sum);
    add_moves(f);
}

void info_section(RedisModuleInfoCtx *ctx, int for_crash_report) {
    figures found;
    /* After a crash the maps may be what is broken. */
    if (for_crash_report || RedisModule_InfoAddSection(ctx, NULL) != REDISMODULE_OK) return;
    gather(&found);
    for (int i = 0; i < found.count; i++) {
        const figure *f = &found.all[i];
        if (f->text)
            RedisModule_InfoAddFieldCString(ctx, f->name, f->text);
        else if (f->fraction)
            RedisModule_InfoAddFieldDouble(ctx, f->name, f->value);
        else
            RedisModule_InfoAddFieldLongLong(ctx, f->name, f->count);
    }
}

int info_reply(RedisModuleCtx *ctx) {
    figures found;
    gather(&found);
    RedisModule_ReplyWithMap(ctx, found.count);
    for (int i = 0; i < found.count; i++) {
        const figure *f = &found.all[i];
        RedisModule_ReplyWithCString(ctx, f->name);
        if (f->text)
            RedisModule_ReplyWithCString(ctx, f->text);
        else if (f->fraction)
            RedisModule_ReplyWithDouble(ctx, f->value);
        else
            RedisModule_ReplyWithLongLong(ctx, f->count);
    }
    return REDISMODULE_OK;
}
