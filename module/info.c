/* info.c: the figures of INFO ckv and CKV STATS. See info.h. */
#include "info.h"

#include "background/mover.h"
#include "background/reencode.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "keyspace/prefixes.h"
#include "background/rates.h"
#include "background/train.h"
#include "server/clock.h"

typedef struct figure {
    const char *name;
    bool fraction;
    long long count;
    double value;     /* if it is a fraction */
    const char *text; /* NULL: it is a number */
} figure;

#define FIGURES_MAX 64

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

static double percent(const mover_progress *p) {
    return 100 * ratio((double)p->looked_at, (double)p->keys);
}

static int gather(figure *f) {
    map_group sum = maps_totals(), unserved = maps_totals_unserved();
    const map_totals *t = &sum.totals;
    const codecs *all = &ckv.shared.codecs;
    long long codec_bytes = (long long)codecs_bytes(all);
    double stored = (double)map_record_bytes(t);
    double raw = (double)(t->key_bytes + t->value_bytes);
    int n = 0;
#define COUNT(figure_name, figure_count)                                                           \
    f[n++] = (figure){.name = figure_name, .count = (long long)(figure_count)}
#define FRACTION(figure_name, figure_value)                                                        \
    f[n++] = (figure) {                                                                            \
        .name = figure_name, .fraction = true, .value = figure_value                               \
    }
#define TEXT(figure_name, figure_text)                                                             \
    f[n++] = (figure) {                                                                            \
        .name = figure_name, .text = figure_text                                                   \
    }
    COUNT("records", t->records);
    COUNT("records_with_expiry", t->expiring);
    COUNT("raw_key_bytes", t->key_bytes);
    COUNT("raw_value_bytes", t->value_bytes);
    COUNT("page_bytes", t->page_bytes);
    COUNT("large_records", t->large);
    COUNT("large_bytes", t->large_bytes);
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
    FRACTION("bytes_per_record", ratio(stored + (double)codec_bytes, (double)t->records));
    FRACTION("compression_ratio", ratio(raw, stored));
    COUNT("dictionaries", codecs_count(all));
    COUNT("dictionary_bytes", codec_bytes);
    COUNT("value_kinds", codec_kinds(codecs_current(all)));
    COUNT("dictionary_age_seconds",
          codecs_current_id(all) ? (clock_now_ms() - codecs_current(all)->made_ms) / 1000 : 0);
    COUNT("trainings", ckv.stats.trainings);
    COUNT("training", train_running());
    COUNT("pages_to_reencode", reencode_pages_ahead());
    COUNT("expired_records", ckv.stats.expired);
    FRACTION("expired_per_second", rates_now().expired);
    FRACTION("expired_share", ckv.stats.expired_share);
    FRACTION("expire_seconds", (double)ckv.stats.expire_us / 1e6);
    COUNT("evicted_records", ckv.stats.evicted);
    FRACTION("evicted_per_second", rates_now().evicted);
    FRACTION("eviction_age_seconds", ratio((double)t->records, rates_now().evicted));
    COUNT("evicted_other_keys", ckv.stats.evicted_keys);
    COUNT("maxmemory_in_force", maxmemory_now()->server_limit + maxmemory_raised());
    COUNT("hits", ckv.stats.hits);
    COUNT("misses", ckv.stats.misses);
    COUNT("maps", sum.maps);
    COUNT("unserved_maps", unserved.maps);
    COUNT("unserved_bytes", map_record_bytes(&unserved.totals));
    COUNT("buckets", sum.buckets);
    COUNT("pages", t->pages);
    COUNT("defrag_moved", ckv.stats.defrag_moved);
    COUNT("longest_slice_us", ckv.stats.longest_slice_us);
    TEXT("prefixes", prefixes_text(PREFIX_SERVING));
    TEXT("prefixes_leaving", prefixes_text(PREFIX_LEAVING));
    COUNT("moved_in", ckv.stats.moved_in);
    COUNT("moved_out", ckv.stats.moved_out);
    mover_progress in = mover_progress_of(MOVER_IN), out = mover_progress_of(MOVER_OUT);
    TEXT("moving_in", in.state);
    FRACTION("moving_in_percent", percent(&in));
    TEXT("moving_out", out.state);
    FRACTION("moving_out_percent", percent(&out));
    FRACTION("moving_seconds_left", in.seconds_left + out.seconds_left);
    COUNT("moving_left", in.left);
    COUNT("moving_saved_bytes", in.saved_bytes);
#undef TEXT
#undef COUNT
#undef FRACTION
    return n;
}

void info_section(RedisModuleInfoCtx *ctx, int for_crash_report) {
    figure figures[FIGURES_MAX];
    /* After a crash the maps may be what is broken. */
    if (for_crash_report || RedisModule_InfoAddSection(ctx, NULL) != REDISMODULE_OK) return;
    int n = gather(figures);
    for (int i = 0; i < n; i++) {
        const figure *f = &figures[i];
        if (f->text)
            RedisModule_InfoAddFieldCString(ctx, f->name, f->text);
        else if (f->fraction)
            RedisModule_InfoAddFieldDouble(ctx, f->name, f->value);
        else
            RedisModule_InfoAddFieldLongLong(ctx, f->name, f->count);
    }
}

int info_reply(RedisModuleCtx *ctx) {
    figure figures[FIGURES_MAX];
    int n = gather(figures);
    RedisModule_ReplyWithMap(ctx, n);
    for (int i = 0; i < n; i++) {
        const figure *f = &figures[i];
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
