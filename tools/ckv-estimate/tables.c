/* tables.c: see tables.h. */
#include "tables.h"

#include "base/hash_slot.h"
#include "interval.h"
#include "map/defaults.h"

#include <math.h>

#define ENTRY_BYTES    32 /* of a table, as an allocator gives it */
#define ENTRY_ROUNDING 8  /* of which MEMORY USAGE does not count so many */
/* More than this a key is something else that the server has, no table. */
#define OVERHEAD_MAX 128
/* A server has some 100 KB that are nobody's: of fewer keys the rest says little. */
#define KEYS_MIN 20000
/* What MEMORY USAGE says of the whole is known to so many bytes a key, or it can't be told what is
 * left. */
#define MEMORY_SURE 4

/* ---- tables ---------------------------------------------------------------------------------- */

typedef struct table_kind {
    double of_bucket, bucket_bytes; /* keys, before the table grows */
    double least_fill;              /* of its room: with fewer keys it shrinks */
    bool of_slots;                  /* in a cluster, each slot has its own */
} table_kind;

static table_kind kind_of(const server *from) {
    bool newer = from->version >= (from->valkey ? 800 : 704);
    table_kind kind = {1, 8, newer ? 0.125 : 0.1, newer && from->cluster};
    if (from->valkey && from->version >= 801) {
        kind.of_bucket = 7;
        kind.bucket_bytes = 64;
        kind.least_fill = 0.13;
    }
    return kind;
}

/* Keys that a table has room for. */
static double room(const table_kind *kind, double keys) {
    double buckets = kind->of_bucket > 1 ? 1 : 4;
    while (buckets * kind->of_bucket < keys) buckets *= 2;
    return buckets * kind->of_bucket;
}

/* Bytes a key of a table of pointers whose size is a power of two. */
static double table_slot(uint64_t keys) {
    static const table_kind pointers = {1, 8, 0, false};
    return keys > 0 ? pointers.bucket_bytes * room(&pointers, (double)keys) / (double)keys : 0;
}

/* What is left of a table, beside the part of the keys that stay, when others come for those that
 * go. */
static double left(const table_kind *kind, double parts, double before, double staying,
                   double coming) {
    double all = room(kind, before / parts) * parts;
    if (before <= 0 || staying >= before || staying + coming <= all * kind->least_fill) return 0;
    return all / kind->of_bucket * kind->bucket_bytes * (1 - staying / before);
}

double tables_left(const server *from, const database *d, const parting *keys) {
    table_kind kind = kind_of(from);
    double slots = (double)HASH_SLOTS / (from->primaries > 0 ? (double)from->primaries : 1);
    double parts = kind.of_slots ? slots : 1;
    double maps = fmin(keys->moving, from->cluster ? slots : DEFAULT_MAPS);
    return left(&kind, parts, (double)d->keys, keys->staying, maps) +
           left(&kind, parts, (double)d->expiring, keys->expiring, 0);
}

/* ---- what they take today -------------------------------------------------------------------- */

overhead tables_overhead(const sample *s, const server *from) {
    overhead o = {.key = ENTRY_ROUNDING + table_slot(from->keys),
                  .expiry = ENTRY_BYTES + table_slot(from->expiring)};
    spread memory = {0};
    for (size_t i = 0; i < s->count; i++)
        spread_add(&memory, s->all[i].weight, (double)s->all[i].memory);
    if (from->keyspace_bytes == 0 || memory.weight < KEYS_MIN) return o;
    double rest = (double)from->keyspace_bytes / memory.weight - memory.sum / memory.weight;
    double sure = spread_error(&memory) / memory.weight;
    if (sure > MEMORY_SURE) return o;
    double of_expiry = o.expiry * (double)from->expiring / (double)from->keys;
    if (rest < 0 || rest > OVERHEAD_MAX) {
        o.unknown = (rest - o.key - of_expiry) * memory.weight;
        return o;
    }
    o.key = rest > of_expiry ? rest - of_expiry : 0;
    if (of_expiry > rest) o.expiry *= rest / of_expiry;
    return o;
}
