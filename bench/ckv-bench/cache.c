#include "cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The medians of the 53 caches that Twitter published. */
const Cache cache_usual = {.key_bytes = 36,
                           .value_bytes = 224,
                           .spread = CACHE_SPREAD,
                           .zipf = 1.2,
                           .requests_per_object = 28,
                           .one_hit = 0.08,
                           .misses = 0.03,
                           .sets = 0.12,
                           .ttls = {{86400e3, 1}},
                           .ttl_count = 1};

static double unit_ms(char unit) {
    switch (unit) {
    case 's':
        return 1e3;
    case 'm':
        return 60e3;
    case 'h':
        return 3600e3;
    case 'd':
        return 86400e3;
    default:
        return 0;
    }
}

void cache_set_ttls(Cache *c, const char *text) {
    double all = 0;
    c->ttl_count = 0;
    for (const char *at = text; *at;) {
        double time, share;
        char unit;
        int used = 0;
        if (sscanf(at, " %lf%c:%lf%n", &time, &unit, &share, &used) != 3 || !used || !(time > 0) ||
            !unit_ms(unit) || !(share > 0) || c->ttl_count == TTLS_MAX)
            fail(2,
                 "TTLs are times and their shares, up to %d of them, like '1d:0.65, 90s:0.35'; not "
                 "'%s'",
                 TTLS_MAX, text);
        c->ttls[c->ttl_count++] = (Ttl){time * unit_ms(unit), share};
        all += share;
        at += used;
        at += strspn(at, ", ");
    }
    for (int i = 0; i < c->ttl_count; i++) c->ttls[i].share /= all;
}

/* --- a row of a table --- */

#define FIELDS_MAX 64

/* Splits a line in place; a field with commas is between quotes. */
static int split(char *line, char *fields[FIELDS_MAX]) {
    int n = 0;
    line[strcspn(line, "\r\n")] = 0;
    for (char *at = line; n < FIELDS_MAX; at++) {
        char *end;
        if (*at == '"') {
            fields[n++] = ++at;
            end = strchr(at, '"');
            if (!end) return 0;
            *end++ = 0;
        } else {
            fields[n++] = at;
            end = at + strcspn(at, ",");
        }
        if (*end != ',') return n;
        *end = 0;
        at = end;
    }
    return n;
}

typedef struct {
    const char *path;
    char *names[FIELDS_MAX], *fields[FIELDS_MAX];
    int count;
} Row;

static const char *field(const Row *row, const char *name) {
    for (int i = 0; i < row->count; i++)
        if (strcmp(row->names[i], name) == 0) return row->fields[i];
    fail(1, "%s has no column '%s'", row->path, name);
}

/* NA and N/A are 0: there is no Zipf, or nobody reads. */
static double number(const Row *row, const char *name) {
    const char *text = field(row, name);
    char *end;
    double n = strtod(text, &end);
    if (strcmp(text, "NA") == 0 || strcmp(text, "N/A") == 0) return 0;
    if (end == text || *end || !(n >= 0)) fail(1, "%s: %s is '%s'", row->path, name, text);
    return n;
}

static void take_row(Cache *c, const Row *row) {
    *c = (Cache){.key_bytes = number(row, "key_bytes"),
                 .value_bytes = number(row, "value_bytes"),
                 .spread = CACHE_SPREAD,
                 .zipf = number(row, "zipf_alpha"),
                 .requests_per_object = number(row, "requests_per_object"),
                 .one_hit = number(row, "one_hit_percent") / 100,
                 .misses = number(row, "miss_ratio"),
                 .sets = number(row, "sets"),
                 .increments = number(row, "increments"),
                 .deletes = number(row, "deletes")};
    /* What the table has no column for, its rounding included. */
    c->adds = fmax(0, 1 - number(row, "gets") - c->sets - c->increments - c->deletes);
    cache_set_ttls(c, field(row, "ttls"));
}

void cache_read_row(Cache *c, const char *path, long wanted) {
    Row row = {.path = path};
    char *head = NULL, *line = NULL;
    size_t head_room = 0, room = 0;
    FILE *f = fopen(path, "r");
    if (!f || getline(&head, &head_room, f) < 0) fail(1, "cannot read %s", path);
    int names = split(head, row.names), found = 0;
    while (!found && getline(&line, &room, f) >= 0) {
        row.count = split(line, row.fields);
        if (row.count != names)
            fail(1, "%s: a line has %d columns, the first one %d", path, row.count, names);
        found = strtol(field(&row, "cluster"), NULL, 10) == wanted;
    }
    if (!found) fail(1, "%s has no cluster %ld", path, wanted);
    take_row(c, &row);
    free(head);
    free(line);
    fclose(f);
}

/* --- what follows from the statistics --- */

static double mean_ttl(const Cache *c) {
    double ms = 0;
    for (int i = 0; i < c->ttl_count; i++) ms += c->ttls[i].ms * c->ttls[i].share;
    return ms;
}

/* Little's law tells how fast time has to pass: as many objects are alive as are created in the
 * time that one lives. */
Plan cache_plan(const Cache *c, uint64_t objects, double rate) {
    Plan p = {.fresh = 1 / c->requests_per_object};
    p.gets = fmax(0, 1 - c->sets - c->increments - c->deletes - c->adds);
    p.missing = p.gets * c->misses;
    double refilled = fmin(p.missing, c->sets + c->increments + c->adds + CACHE_ROUNDED);
    p.existing = p.gets > 0 ? 1 - (p.missing - refilled) / p.gets : 1;
    p.written_first = fmax(0, 1 - p.missing / p.fresh);
    p.overwrites = fmax(0, c->sets - refilled - p.fresh * p.written_first);
    p.counters = c->increments > 0 ? c->increments / (c->increments + c->sets) : 0;
    double created = fmax(refilled, p.fresh * p.existing);
    double alive_ms = (double)objects / (created * rate) * 1e3;
    p.speed = c->ttl_count ? mean_ttl(c) / alive_ms : 0;
    uint64_t all = (uint64_t)((double)objects / p.existing);
    p.once = (uint64_t)((double)all * p.fresh * c->one_hit * p.existing / created);
    p.ranks = all > p.once ? all - p.once : 1;
    return p;
}

static long at_least_1(double ms) {
    return ms < 1 ? 1 : (long)ms;
}

long cache_ttl(const Cache *c, const Plan *p, uint64_t random) {
    double left = fraction(random);
    for (int i = 0; i < c->ttl_count; i++)
        if ((left -= c->ttls[i].share) < 0 || i == c->ttl_count - 1)
            return at_least_1(c->ttls[i].ms / p->speed);
    return 0;
}

/* Among those that are alive there are more of the long-lived, and they are of any age. */
long cache_ttl_left(const Cache *c, const Plan *p, uint64_t random) {
    double left = fraction(random) * mean_ttl(c);
    for (int i = 0; i < c->ttl_count; i++) {
        double part = c->ttls[i].ms * c->ttls[i].share;
        if (left < part || i == c->ttl_count - 1)
            return at_least_1(left / part * c->ttls[i].ms / p->speed);
        left -= part;
    }
    return 0;
}
