/* prefixes.c: which families are worth a prefix. See estimate.h. */
#include "common/common.h"
#include "estimate.h"

#include <string.h>

/* A family is named that gains at least this share of what it takes, and of all that is gained. */
#define GAIN_OF_OWN 0.05
#define GAIN_OF_ALL 0.001
/* So much of the gain may be lost with families that no prefix can name; if it is more, all keys
 * are named. */
#define LOST_MAX 0.05

static double all_gains(const estimate *e) {
    double all = 0;
    for (size_t i = 0; i < e->count; i++)
        if (row_saved(&e->rows[i]) > 0) all += row_saved(&e->rows[i]);
    return all;
}

static bool gains(const row *r, double all) {
    double saved = row_saved(r);
    return r->strings && saved > 0 && saved >= GAIN_OF_OWN * r->now && saved >= GAIN_OF_ALL * all;
}

char *estimate_prefixes(const estimate *e) {
    size_t room = 2;
    double all = all_gains(e), lost = 0;
    for (size_t i = 0; i < e->count; i++) room += strlen(e->rows[i].prefix) + 1;
    char *text = allocate(room), *end = text;
    for (size_t i = 0; i < e->count; i++) {
        const row *r = &e->rows[i];
        if (!gains(r, all)) continue;
        if (!r->has_prefix) lost += row_saved(r);
        if (!r->has_prefix) continue;
        if (end > text) *end++ = ' ';
        end = stpcpy(end, r->prefix);
    }
    if (lost > LOST_MAX * all) strcpy(text, "*");
    return text;
}
