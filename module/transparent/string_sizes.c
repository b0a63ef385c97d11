/* string_sizes.c: how long strings are. See string_sizes.h. */
#include "transparent/string_sizes.h"

#include "core/base/random.h"
#include "keyspace/maps.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records, and bytes of their values, of all databases: to tell the length of an encoded one is to
 * go over it, and everybody waits. Each has its share by records, or a few records, or of the bytes
 * one by databases if that is more: twice as many at most. Of no more all are counted. */
#define SAMPLE 1000.0
#define FEWEST 10.0
#define BYTES  (256.0 * (1 << 10))

static const char units[] = " KMGTPE";

static int bin_of(size_t len) {
    return len == 0 ? 0 : 64 - __builtin_clzll(len);
}

/* ---- records --------------------------------------------------------------------------------- */

typedef struct counting {
    string_sizes sizes;
    map *from;
    uint64_t records, bytes;
    uint64_t most, most_bytes;
} counting;

/* False: they are enough. */
static bool count(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    counting *c = context;
    (void)key, (void)key_len;
    size_t len = map_value_len(c->from, pos);
    c->records++;
    if (len == CODEC_NO_ROOM) return true; /* it is damaged */
    c->sizes.bins[bin_of(len)]++;
    c->bytes += len;
    return c->bytes < c->most_bytes;
}

static void count_all(counting *c, int db) {
    for (size_t at = 0; at < maps_in_db(db); at++) {
        const keyed_map *s = maps_ranked(db, at);
        bool counts = maps_served_at(db, s->place) == s;
        c->from = s->m;
        if (counts && !map_each_record(s->m, count, c)) return;
    }
}

static void count_some(counting *c, int db) {
    bool more = true;
    static uint64_t random = 1;
    for (uint64_t i = 0; i < c->most && c->records < c->most && more; i++) {
        const keyed_map *s = maps_ranked(db, random_next(&random));
        if (!s || !maps_served(s)) continue;
        c->from = s->m;
        more = map_each(s->m, (uint32_t)(random_next(&random) % s->m->buckets), count, c);
    }
}

void string_sizes_add_records(string_sizes *s, int db, uint64_t all) {
    map_totals of_db = maps_totals_of(db).totals;
    double records = (double)of_db.records, share = records / (double)all;
    if (of_db.records == 0) return;
    counting c = {.most = (uint64_t)fmax(SAMPLE * share, FEWEST),
                  .most_bytes = (uint64_t)(BYTES * fmax(share, 1.0 / maps_dbs()))};
    if (of_db.records > c.most || of_db.value_bytes >= c.most_bytes) count_some(&c, db);
    if (c.records == 0) count_all(&c, db);
    double each = records / (double)(c.records ? c.records : 1);
    for (int i = 0; i < STRING_SIZES_BINS; i++)
        s->bins[i] += (uint64_t)((double)c.sizes.bins[i] * each + 0.5);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The bin of "2K"; -1: it is none. */
static int bin_of_label(const char *label) {
    char *end;
    uint64_t number = strtoull(label, &end, 10);
    const char *unit = *end == '=' ? units : strchr(units, *end);
    if (end == label || !unit || !*unit) return -1;
    return number == 0 ? 0 : bin_of(number) + 10 * (int)(unit - units);
}

void string_sizes_add_text(string_sizes *s, const char *text, const char *end) {
    while (text < end) {
        const char *is = memchr(text, '=', (size_t)(end - text)), *next;
        int bin = bin_of_label(text);
        if (!is || bin < 0 || bin >= STRING_SIZES_BINS) return;
        s->bins[bin] += strtoull(is + 1, NULL, 10);
        next = memchr(is, ',', (size_t)(end - is));
        text = next ? next + 1 : end;
    }
}

void string_sizes_put(const string_sizes *s, int db, RedisModuleString *to) {
    char text[64], separator = ':';
    for (int i = 0; i < STRING_SIZES_BINS; i++) {
        if (s->bins[i] == 0) continue;
        if (separator == ':') {
            int len = snprintf(text, sizeof text, "db%d_" STRING_SIZES_NAME, db);
            RedisModule_StringAppendBuffer(NULL, to, text, (size_t)len);
        }
        uint64_t number = i == 0 ? 0 : 1ULL << (i - 1) % 10;
        int unit = i == 0 ? 0 : (i - 1) / 10;
        int len = snprintf(text, sizeof text, "%c%" PRIu64 "%.*s=%" PRIu64, separator, number,
                           unit > 0, &units[unit], s->bins[i]);
        RedisModule_StringAppendBuffer(NULL, to, text, (size_t)len);
        separator = ',';
    }
    if (separator == ',') RedisModule_StringAppendBuffer(NULL, to, "\r\n", 2);
}
