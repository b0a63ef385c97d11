/* estimate.c: see estimate.h. */
#include "estimate.h"

#include "common/common.h"
#include "interval.h"
#include "tables.h"

#include <stdlib.h>
#include <string.h>

/* ---- one key --------------------------------------------------------------------------------- */

typedef struct estimating {
    const sample *s;
    const store_figures *figures;
    overhead overhead;
    double *raw, *cost; /* by family: of strings that were stored, bytes */
    double all_raw, all_cost;
    row *families;
    parting *databases;
    spread with_ckv;
} estimating;

static double bytes_now(const estimating *e, const sampled *k) {
    return (double)k->memory + e->overhead.key + (k->ttl_ms >= 0 ? e->overhead.expiry : 0);
}

static double raw_bytes(const sampled *k) {
    return (double)k->key_len + (double)k->value_len + 1;
}

/* Without dictionaries. What was not stored is as those of its family that were. */
static double bytes_in_ckv(const estimating *e, size_t i) {
    const sampled *k = &e->s->all[i];
    double known = e->figures->all[i].bytes;
    if (known > 0) return known;
    if (e->raw[k->family] > 0) return raw_bytes(k) * e->cost[k->family] / e->raw[k->family];
    return e->all_raw > 0 ? raw_bytes(k) * e->all_cost / e->all_raw : raw_bytes(k);
}

static void add_costs(estimating *e) {
    for (size_t i = 0; i < e->s->count; i++) {
        const sampled *k = &e->s->all[i];
        double bytes = e->figures->all[i].bytes;
        if (bytes == 0) continue;
        e->raw[k->family] += raw_bytes(k);
        e->cost[k->family] += bytes;
        e->all_raw += raw_bytes(k);
        e->all_cost += bytes;
    }
}

static void add_times(row *r, const stored *figures) {
    if (figures->bytes == 0) return;
    r->stored++;
    r->encode_us += figures->encode_us;
    r->decode_us += figures->decode_us;
}

static void part(parting *keys, const sampled *k, bool stays) {
    *(stays ? &keys->staying : &keys->moving) += k->weight;
    if (stays && k->ttl_ms >= 0) keys->expiring += k->weight;
}

static void add_key(estimating *e, size_t i) {
    const sampled *k = &e->s->all[i];
    row *r = &e->families[k->family];
    double now = bytes_now(e, k), then = now;
    bool stays = !selection_may(k);
    if (!stays) then = bytes_in_ckv(e, i);
    r->sampled++;
    r->keys += k->weight;
    r->key_bytes += k->weight * k->key_len;
    r->value_bytes += k->weight * (double)k->value_len;
    r->expiring += k->ttl_ms >= 0 ? k->weight : 0;
    r->now += k->weight * now;
    r->with_ckv += k->weight * then;
    if (stays) {
        r->staying += k->weight;
        r->staying_bytes += k->weight * now;
    } else {
        r->raw_in_ckv += k->weight * (double)k->value_len;
    }
    part(&e->databases[k->database], k, stays);
    spread_add(&e->with_ckv, k->weight, then);
    add_times(r, &e->figures->all[i]);
}

/* ---- families -------------------------------------------------------------------------------- */

static void add_row(row *to, const row *more) {
    to->sampled += more->sampled;
    to->keys += more->keys;
    to->key_bytes += more->key_bytes;
    to->value_bytes += more->value_bytes;
    to->expiring += more->expiring;
    to->now += more->now;
    to->with_ckv += more->with_ckv;
    to->staying += more->staying;
    to->staying_bytes += more->staying_bytes;
    to->raw_in_ckv += more->raw_in_ckv;
    to->stored += more->stored;
    to->encode_us += more->encode_us;
    to->decode_us += more->decode_us;
}

static double left_in_tables(const estimating *e, const server *from) {
    double bytes = 0;
    for (size_t i = 0; i < from->count; i++)
        bytes += tables_left(from, &from->databases[i], &e->databases[i]);
    return bytes;
}

/* Each family has as large a share of the dictionaries, and of what the keys leave in the tables,
 * as it has of what is in ckv, raw. */
static void share_fixed(estimating *e, double bytes) {
    double all = 0;
    for (size_t i = 0; i < e->s->families.count; i++) all += e->families[i].raw_in_ckv;
    for (size_t i = 0; i < e->s->families.count && all > 0; i++)
        e->families[i].with_ckv += bytes * e->families[i].raw_in_ckv / all;
}

static int by_size(const void *a, const void *b) {
    double x = ((const row *)a)->now, y = ((const row *)b)->now;
    return (x < y) - (x > y);
}

static int by_saving(const void *a, const void *b) {
    double x = row_saved(a), y = row_saved(b);
    return x == y ? by_size(a, b) : (x < y) - (x > y);
}

/* The row of all further families of a type. */
static row *others_of(estimate *e, const char *type, bool strings) {
    for (size_t i = ROWS_MAX; i < e->count; i++)
        if (strcmp(e->rows[i].type, type) == 0) return &e->rows[i];
    e->rows[e->count] = (row){.name = "(others)", .prefix = "", .type = type, .strings = strings};
    return &e->rows[e->count++];
}

static void make_rows(estimate *e, row *families, size_t count) {
    qsort(families, count, sizeof *families, by_size);
    e->rows = allocate((count + 1) * sizeof *e->rows);
    for (size_t i = 0; i < count; i++) {
        add_row(&e->total, &families[i]);
        if (i < ROWS_MAX)
            e->rows[e->count++] = families[i];
        else
            add_row(others_of(e, families[i].type, families[i].strings), &families[i]);
    }
    qsort(e->rows, e->count, sizeof *e->rows, by_saving);
}

static row *name_families(const families *all) {
    row *rows = allocate((all->count + 1) * sizeof *rows);
    for (size_t i = 0; i < all->count; i++) {
        const family *f = &all->all[i];
        rows[i] = (row){.name = f->name,
                        .prefix = f->prefix,
                        .type = f->type,
                        .strings = family_is_of_strings(f),
                        .has_prefix = family_has_prefix(f)};
    }
    return rows;
}

void estimate_make(estimate *e, const sample *s, const server *from, const store_figures *figures) {
    size_t count = s->families.count;
    *e = (estimate){.total = {.name = "total", .prefix = "", .type = ""}};
    estimating all = {.s = s,
                      .figures = figures,
                      .overhead = tables_overhead(s, from),
                      .databases = allocate((from->count + 1) * sizeof(parting)),
                      .families = name_families(&s->families),
                      .raw = allocate((count + 1) * sizeof(double)),
                      .cost = allocate((count + 1) * sizeof(double))};
    add_costs(&all);
    for (size_t i = 0; i < s->count; i++) add_key(&all, i);
    share_fixed(&all, figures->fixed_bytes + left_in_tables(&all, from));
    make_rows(e, all.families, count);
    double in_ckv = e->total.with_ckv - e->total.staying_bytes;
    double error = interval_error(&all.with_ckv, figures->doubt_bytes, in_ckv);
    e->low = e->total.with_ckv > error ? e->total.with_ckv - error : 0;
    e->high = e->total.with_ckv + error;
    e->unknown = all.overhead.unknown;
    free(all.families);
    free(all.databases);
    free(all.raw);
    free(all.cost);
}

void estimate_free(estimate *e) {
    free(e->rows);
}
