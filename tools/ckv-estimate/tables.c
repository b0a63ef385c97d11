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
/* What MEMORY USAGE counts too many of a number that Redis shares (0 to 9999). */
#define OBJECT_SHARED 16
/* Of a server's dataset nobody's, bytes: 90 to 150 KB (io-threads) when it starts, and 17 KB for
 * each command that was ever called (latency histograms), measured. Too much of fewer keys. */
#define NOBODYS  150e3
#define KEYS_MIN 20000
/* What MEMORY USAGE says of the whole is known to so many bytes a key, or it can't be told what is
 * left. */
#define MEMORY_SURE 4

/* What a cluster's slot has, beside what stands in its table; from Redis 8 on it counts how large
 * its keys are. Bytes, measured. */
#define SLOT_REDIS_7_4 102
#define SLOT_REDIS_8   2550
#define SLOT_VALKEY    114

/* ---- tables ---------------------------------------------------------------------------------- */

typedef struct table_kind {
    double of_bucket, bucket_bytes; /* keys, before the table grows */
    double least_fill;              /* of its room: with fewer keys it shrinks */
    double slot_bytes;              /* in a cluster, of a slot that has keys, whatever they are */
    bool of_slots;                  /* there, each slot has its own */
} table_kind;

static table_kind kind_of(const server *from) {
    bool newer = from->version >= (from->valkey ? 800 : 704);
    table_kind kind = {.of_bucket = 1,
                       .bucket_bytes = 8,
                       .least_fill = newer ? 0.125 : 0.1,
                       .of_slots = newer && from->cluster};
    if (kind.of_slots)
        kind.slot_bytes = from->valkey          ? SLOT_VALKEY
                          : from->version < 800 ? SLOT_REDIS_7_4
                                                : SLOT_REDIS_8;
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
    static const table_kind pointers = {.of_bucket = 1, .bucket_bytes = 8};
    return keys > 0 ? pointers.bucket_bytes * room(&pointers, (double)keys) / (double)keys : 0;
}

/* What is left of a table, beside the part of the keys that stay, when others come for those that
 * go. (The smallest table of a slot is in slot_bytes.) */
static double left(const table_kind *kind, double parts, double before, double staying,
                   double coming) {
    double all = room(kind, before / parts) * parts;
    if (before <= 0 || staying >= before || staying + coming <= all * kind->least_fill) return 0;
    double smallest = kind->of_slots ? room(kind, 0) * parts : 0;
    return (all - smallest) / kind->of_bucket * kind->bucket_bytes * (1 - staying / before);
}

/* Slots of a node that have some of so many keys. */
static double slots_with(const server *from, double keys) {
    double all = (double)HASH_SLOTS / (from->primaries > 0 ? (double)from->primaries : 1);
    return all * (1 - exp(-keys / all));
}

double tables_left(const server *from, const database *d, const parting *keys) {
    table_kind kind = kind_of(from);
    double all = (double)d->keys, slots = slots_with(from, all), parts = kind.of_slots ? slots : 1;
    double maps = from->cluster ? slots_with(from, keys->moving) : fmin(keys->moving, DEFAULT_MAPS);
    double of_slots = all > keys->staying ? kind.slot_bytes * slots * (1 - keys->staying / all) : 0;
    return left(&kind, parts, all, keys->staying, maps) +
           left(&kind, parts, (double)d->expiring, keys->expiring, 0) + of_slots;
}

/* ---- what they take today -------------------------------------------------------------------- */

overhead tables_overhead(const sample *s, const server *from) {
    double all = (double)from->keys, of_slots = kind_of(from).slot_bytes * slots_with(from, all);
    double slots = all > 0 ? of_slots / all : 0;
    overhead o = {.key = ENTRY_ROUNDING + table_slot(from->keys) + slots,
                  .expiry = ENTRY_BYTES + table_slot(from->expiring)};
    spread memory = {0};
    for (size_t i = 0; i < s->count; i++)
        spread_add(&memory, s->all[i].weight, (double)s->all[i].memory);
    if (from->keyspace_bytes == 0 || memory.weight < KEYS_MIN) return o;
    double rest = ((double)from->keyspace_bytes - memory.sum) / memory.weight;
    double sure = spread_error(&memory) / memory.weight;
    if (sure > MEMORY_SURE) return o;
    double of_expiry = o.expiry * (double)from->expiring / all;
    if (rest < -OBJECT_SHARED || rest > OVERHEAD_MAX + slots) {
        o.unknown = (rest - o.key - of_expiry) * memory.weight;
        return o;
    }
    rest -= NOBODYS / memory.weight;
    double expiry = fmax(fmin(of_expiry, rest), 0);
    if (of_expiry > 0) o.expiry *= expiry / of_expiry;
    o.key = rest - expiry;
    return o;
}
