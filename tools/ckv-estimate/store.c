/* store.c: see store.h. */
#include "store.h"

#include "common/common.h"
#include "counted.h"
#include "entries.h"
#include "learn.h"
#include "map/defaults.h"
#include "map/map.h"
#include "map/map_reencode.h"
#include "progress.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* What the server's side of a map takes: its key, name and entry, and what wraps it; and that of
 * all maps, beside what core takes: tables and buffers. Bytes, measured. */
typedef struct map_costs {
    double key, all;
} map_costs;
static const map_costs costs_alone = {171, 90000};
/* Longer names, and for every slot a place in a table. */
static const map_costs costs_in_cluster = {182, 90000 + 8 * 16384};

/* A slot in a page beside its payload: tag and length, and an expiry. */
#define SLOT_BYTES   2
#define EXPIRY_BYTES 2
/* What a large record takes in its page. */
#define LARGE_SLOT_BYTES (SLOT_BYTES + PAGE_LARGE_BYTES)

typedef struct imitation {
    const sample *s;
    store_figures *figures;
    map_shared shared;
    map **maps;
    uint32_t count;
    entries entries;
    const map_costs *costs;
    int64_t now_ms;
    size_t empty_bytes; /* of the counted memory, before anything was stored */
} imitation;

static const uint64_t secret[2] = {1, 2};

static double now_us(void) {
    return now_seconds() * 1e6;
}

static void check(bool done) {
    if (!done) fail(1, "out of memory");
}

/* ---- storing --------------------------------------------------------------------------------- */

static map *map_of(imitation *im, const entry *e) {
    map **at = &im->maps[e->place];
    if (!*at) check((*at = map_new(&im->shared, secret)) != NULL);
    return *at;
}

/* Encodes a value and puts it into its map. */
static void put(imitation *im, const entry *e) {
    const sampled *k = &im->s->all[e->sampled];
    int64_t at_ms = k->ttl_ms < 0 ? EXPIRY_NEVER : im->now_ms + k->ttl_ms;
    map *m = map_of(im, e);
    map_key key;
    map_pos pos;
    codec_value value;
    double began = now_us();
    check(map_encode(&im->shared, k->value, k->value_len, &value));
    im->figures->all[e->sampled].encode_us = (float)(now_us() - began);
    im->figures->all[e->sampled].encoded = (float)value.len;
    map_key_init(m, &key, e->key, e->len);
    bool there = map_find(m, &key, &pos);
    check(map_put(m, &key, there ? &pos : NULL, &value, expiry_code(at_ms, im->now_ms),
                  expiry_ticks(im->now_ms)));
}

static void use(imitation *im, codec *c) {
    if (c) codecs_use(&im->shared.codecs, (uint8_t)codecs_add(&im->shared.codecs, c));
}

/* The second codec is the first once more, so that all is written anew. */
static void store_all(imitation *im, const selection *chosen) {
    codec *first, *second;
    const entries *all = &im->entries;
    learn(im->s, chosen, all, &first, &second);
    use(im, first);
    for (size_t i = 0; i < all->count; i++) {
        put(im, &all->all[i]);
        progress_show("storing it", 0.7 * (double)i / (double)all->count);
    }
    use(im, second);
}

static void bring_to_codec(map *m, uint64_t now_ticks, mem_retired *old) {
    for (uint32_t bucket = 0; bucket < m->buckets;) {
        map_step step = map_reencode(m, bucket, now_ticks, SIZE_MAX / 2, old);
        bucket = step == MAP_MORE ? map_bucket_or_last(m, bucket) : bucket + 1;
    }
}

static void write_anew(imitation *im) {
    mem_retired old = {0};
    for (uint32_t i = 0; i < im->count; i++) {
        if (!im->maps[i]) continue;
        bring_to_codec(im->maps[i], expiry_ticks(im->now_ms), &old);
        progress_show("storing it", 0.7 + 0.2 * i / im->count);
    }
    mem_free_retired(&mem_counted, &old);
    codecs_remove_unused(&im->shared.codecs);
}

/* ---- what it takes --------------------------------------------------------------------------- */

static bool find(imitation *im, const entry *e, map_pos *pos) {
    map_key k;
    map *m = map_of(im, e);
    map_key_init(m, &k, e->key, e->len);
    return map_find(m, &k, pos);
}

/* Bytes of a record's own in its page, and outside of it. */
static double bytes_in_page(const map_pos *pos) {
    double expiry = pos->p->flags & PAGE_EXPIRY ? EXPIRY_BYTES : 0;
    return page_len(pos->p, pos->slot) + SLOT_BYTES + expiry;
}

static double bytes_outside(const map_pos *pos) {
    large *l = page_large(pos->p, pos->slot);
    return l ? (double)counted_class(large_bytes(l)) : 0;
}

/* How many bytes of maps there are for one that is a record's own in its page. */
static double cost_of_page_byte(imitation *im) {
    double own = 0, maps = 0;
    map_pos pos;
    for (size_t i = 0; i < im->entries.count; i++)
        if (find(im, &im->entries.all[i], &pos)) own += bytes_in_page(&pos);
    for (uint32_t i = 0; i < im->count; i++)
        if (im->maps[i])
            maps += (double)map_bytes(im->maps[i]) - (double)im->maps[i]->totals.large_bytes +
                    im->costs->key;
    return own > 0 ? maps / own : 1;
}

static void measure_records(imitation *im, double page_byte) {
    const entries *all = &im->entries;
    for (size_t i = 0; i < all->count; i++) {
        map_pos pos;
        const entry *e = &all->all[i];
        if (!find(im, e, &pos)) continue;
        double bytes = bytes_in_page(&pos) * page_byte + bytes_outside(&pos);
        size_t len;
        double began = now_us();
        check(map_value(map_of(im, e), &pos, &len) != NULL);
        im->figures->all[e->sampled].decode_us = (float)(now_us() - began);
        im->figures->all[e->sampled].bytes = (float)bytes;
        progress_show("storing it", 0.9 + 0.1 * (double)i / (double)all->count);
    }
}

/* A value that is the same for all codecs; of one of which only the first bytes are known, the rest
 * is taken to be as they are. */
static void measure_long(imitation *im, size_t i, double page_byte) {
    const sampled *k = &im->s->all[i];
    stored *figures = &im->figures->all[i];
    codec_value encoded;
    size_t len;
    double began = now_us(), all = (double)k->value_len / k->fetched;
    check(codecs_encode(&im->shared.codecs, &im->shared.work, k->value, k->fetched, &encoded));
    double between = now_us();
    check(codec_decode_value(codecs_current(&im->shared.codecs), &im->shared.work, encoded.bytes,
                             encoded.len, &len) != NULL);
    figures->encode_us = (float)((between - began) * all);
    figures->decode_us = (float)((now_us() - between) * all);
    figures->encoded = (float)((double)encoded.len * all);
    large head = {.key_len = k->key_len, .value_len = 0};
    double bytes = (double)large_bytes(&head) + figures->encoded;
    figures->bytes = (float)((double)counted_class((size_t)bytes) + LARGE_SLOT_BYTES * page_byte);
}

/* Bytes of encoded values for a raw one, of what was learned from and of what was not. */
static void find_doubt(imitation *im, const selection *chosen) {
    double raw[2][2] = {{0}}, encoded[2][2] = {{0}};
    for (size_t i = 0; i < im->s->count; i++) {
        if (!chosen->stored[i]) continue;
        const sampled *k = &im->s->all[i];
        int is_long = k->value_len >= CODEC_LONG, known = chosen->learned[i];
        raw[is_long][known] += (double)k->value_len;
        encoded[is_long][known] += im->figures->all[i].encoded;
    }
    for (int i = 0; i < KINDS_OF_VALUES; i++) {
        const kind_of_values *kind = &chosen->kinds[i];
        if (raw[i][0] == 0 || raw[i][1] == 0) continue;
        double gap = encoded[i][0] / raw[i][0] - encoded[i][1] / raw[i][1];
        im->figures->doubt_bytes += fabs(gap) / 2 * (1 - kind->completeness) * kind->store_bytes;
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void measure(imitation *im, const selection *chosen) {
    double maps = 0, page_byte;
    workspace_rest(&im->shared.work);
    for (uint32_t i = 0; i < im->count; i++)
        if (im->maps[i]) maps += (double)map_bytes(im->maps[i]);
    page_byte = cost_of_page_byte(im);
    im->figures->fixed_bytes = (double)(counted_bytes() - im->empty_bytes) - maps + im->costs->all;
    measure_records(im, page_byte);
    for (size_t i = 0; i < im->s->count; i++) {
        const sampled *k = &im->s->all[i];
        if (selection_may(k) && !selection_fits(k)) measure_long(im, i, page_byte);
    }
    find_doubt(im, chosen);
}

static void tear_down(imitation *im) {
    for (uint32_t i = 0; i < im->count; i++)
        if (im->maps[i]) map_free(im->maps[i]);
    map_shared_free(&im->shared);
    entries_free(&im->entries);
    free(im->maps);
    free(im);
}

void store_imitate(store_figures *figures, const sample *s, const server *from) {
    selection chosen;
    imitation *im = allocate(sizeof *im);
    *figures = (store_figures){.all = allocate((s->count + 1) * sizeof *figures->all)};
    im->s = s;
    im->figures = figures;
    im->costs = from->cluster ? &costs_in_cluster : &costs_alone;
    im->now_ms = (int64_t)time(NULL) * 1000;
    check(map_shared_init(&im->shared, &mem_counted, DEFAULT_COMPRESSION_LEVEL));
    im->empty_bytes = counted_bytes();
    selection_make(&chosen, s);
    entries_make(&im->entries, s, &chosen, from);
    im->count = im->entries.places;
    im->maps = allocate((im->count + 1u) * sizeof *im->maps);
    store_all(im, &chosen);
    write_anew(im);
    measure(im, &chosen);
    progress_end();
    selection_free(&chosen);
    tear_down(im);
}

void store_figures_free(store_figures *figures) {
    free(figures->all);
}
