/*
 * estimate.h: what the sample says of the whole server, by families of keys, with an interval.
 *
 * Today a key takes what MEMORY USAGE says and its share of what finds it (tables.h). Keys that are
 * no strings stay as they are, and so do strings that ckv does not compress. All others are taken
 * to be in ckv, also where they take more: what moves strings in leaves out single ones that would
 * hardly gain, but what is written under a prefix goes in, and a cache is written all the time.
 */
#ifndef ESTIMATE_ESTIMATE_H
#define ESTIMATE_ESTIMATE_H

#include "store.h"

/* A family, several, or all of them; bytes of the whole server. */
typedef struct row {
    const char *name, *prefix, *type;
    bool strings;
    bool has_prefix; /* ckv.prefixes can name it */
    double sampled;  /* keys that were looked at */
    double keys, key_bytes, value_bytes, expiring;
    double now, with_ckv;
    double staying, staying_bytes;       /* of them, keys that stay as they are */
    double raw_in_ckv;                   /* bytes of values that do not */
    double stored, encode_us, decode_us; /* of those that were encoded: their number, sums */
} row;

#define ROWS_MAX 40 /* further families are told together */

typedef struct estimate {
    row *rows; /* the largest saving first */
    size_t count;
    row total;
    double low, high; /* with 95%, what it would take with ckv */
    double unknown;   /* bytes that are in no row; below 0: too many are */
} estimate;

static inline double row_saved(const row *r) {
    return r->now - r->with_ckv;
}
static inline double row_times(const row *r) {
    return r->with_ckv > 0 ? r->now / r->with_ckv : 1;
}
static inline double row_mean(double sum, double count) {
    return count > 0 ? sum / count : 0;
}

void estimate_make(estimate *e, const sample *s, const server *from, const store_figures *figures);
void estimate_free(estimate *e);

/* The setting ckv.prefixes with which the families that gain live in ckv; the caller frees it. */
char *estimate_prefixes(const estimate *e);

#endif
