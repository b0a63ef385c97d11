/* sampling.c: see sampling.h. */
#include "background/sampling.h"

#include "background/trial.h"
#include "core/base/random.h"
#include "core/base/stem.h"
#include "core/codec/codec_train.h"
#include "keyspace/maps.h"
#include "server/clock.h"

#include <stdlib.h>
#include <string.h>

/* Neighbours are often alike: so many times as many buckets are visited as would give the sample,
 * and as much less is taken of each. */
#define SPREAD 8
/* Less than 1 in this of the sample is not looked for any longer. */
#define HARDLY 16
/* A sample of a kind of values that is as good as whole. */
#define ENOUGH(wanted) ((wanted) / 4 * 3)

/* Samples, each behind its length, in chunks: one block that grows would be copied, and that takes
 * the main thread tens of milliseconds. */
#define CHUNK_BYTES (256u << 10)
typedef struct chunk {
    struct chunk *next;
    uint32_t used;
    uint8_t bytes[];
} chunk;

typedef struct collection {
    chunk *first, *last;
    size_t used, count; /* bytes of samples, samples */
} collection;

static struct {
    bool trial;    /* some records are kept for it */
    size_t wanted; /* of each kind of values. Bytes */
    bool again; /* a round for kinds of values of which the first one gave little; none are kept */
    maps_cursor cursor;
    uint32_t seen, seen_before; /* records of the bucket: in this step, in those before it */
    uint64_t deadline_us;       /* of the step */
    /* Chances, of CODEC_SAMPLE_ALL: of each kind to be taken; of its bucket to be visited, and
     * then, of it to be taken there. */
    uint64_t chance[SAMPLING_KINDS], visit, take[SAMPLING_KINDS];
    uint64_t random;
    collection samples[SAMPLING_KINDS];
    chunk *spare; /* they hold nothing */
    uint8_t last_stem[64];
    size_t last_stem_len;
} job;

void sampling_init(void) {
    maps_cursor_register(&job.cursor);
    job.random = 0x9e3779b97f4a7c15ULL;
}

/* ---- one record ------------------------------------------------------------------------------ */

static bool add_chunk(collection *c) {
    chunk *added = job.spare ? job.spare : malloc(CHUNK_BYTES);
    if (!added) return false;
    if (job.spare) job.spare = job.spare->next;
    *added = (chunk){0};
    *(c->last ? &c->last->next : &c->first) = added;
    c->last = added;
    return true;
}

static bool fits(const collection *c, size_t bytes) {
    return c->last && c->last->used + bytes <= CHUNK_BYTES - sizeof(chunk);
}

/* Adds a sample, which fits a chunk. What there is no memory for is left out. */
static void collect(collection *c, const uint8_t *bytes, size_t len) {
    uint32_t prefix = (uint32_t)len;
    if (!fits(c, sizeof prefix + len) && !add_chunk(c)) return;
    uint8_t *to = c->last->bytes + c->last->used;
    memcpy(to, &prefix, sizeof prefix);
    memcpy(to + sizeof prefix, bytes, len);
    c->last->used += (uint32_t)(sizeof prefix + len);
    c->used += len;
    c->count++;
}

/* To give a chunk back to the system takes some 50 us: at the end of a first round all of them were
 * 4 ms of the main thread's. */
static void forget(collection *c) {
    if (c->last) {
        c->last->next = job.spare;
        job.spare = c->first;
    }
    *c = (collection){0};
}

void sampling_forget(void) {
    for (int kind = 0; kind < SAMPLING_KINDS; kind++) forget(&job.samples[kind]);
}

bool sampling_give_back(void) {
    chunk *given = job.spare;
    if (!given) return false;
    job.spare = given->next;
    free(given);
    return true;
}

/* Neighbours share their stem, and it is stored once: it counts once. */
static void collect_key(const uint8_t *key, size_t len) {
    uint8_t suffix;
    size_t stem_len = stem_split(key, len, &suffix);
    if (stem_len > MAP_KEY_MAX || job.samples[SAMPLING_KEYS].used + stem_len > CODEC_SAMPLE_KEYS)
        return;
    bool again = stem_len == job.last_stem_len && stem_len <= sizeof job.last_stem &&
                 !memcmp(key, job.last_stem, stem_len);
    if (again) return;
    if (!job.trial || !trial_keeps(TRIAL_KEY, key, stem_len))
        collect(&job.samples[SAMPLING_KEYS], key, stem_len);
    job.last_stem_len = stem_len;
    if (stem_len <= sizeof job.last_stem) memcpy(job.last_stem, key, stem_len);
}

/* Random numbers below CODEC_SAMPLE_ALL. */
static uint64_t next_random(void) {
    return random_next(&job.random) >> 32;
}

static bool has_enough(int kind) {
    return job.chance[kind] == 0 || job.samples[kind].used >= job.wanted;
}

static bool sampled_enough(void) {
    return has_enough(SAMPLING_SHORTS) && has_enough(SAMPLING_LONGS);
}

/* What is learned is of no use for values longer than CODEC_PHRASE_MAX. */
static void sample_value(map *m, const map_pos *pos, uint64_t draw) {
    size_t len = map_value_len(m, pos);
    if (len == CODEC_NO_ROOM || len == 0 || len > CODEC_PHRASE_MAX) return;
    int kind = len >= CODEC_LONG ? SAMPLING_LONGS : SAMPLING_SHORTS;
    if (draw >= job.take[kind] || has_enough(kind)) return;
    const uint8_t *value = map_value(m, pos, &len);
    if (!value) return;
    if (len > CODEC_SAMPLE_VALUE) len = CODEC_SAMPLE_VALUE;
    if (job.again || !job.trial || !trial_keeps(TRIAL_VALUE, value, len))
        collect(&job.samples[kind], value, len);
}

/* Stops in the midst of a bucket if there is no time for more. */
static bool sample_record(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    if (job.seen++ < job.seen_before) return true;
    uint64_t draw = next_random();
    bool value = draw < job.take[SAMPLING_SHORTS] || draw < job.take[SAMPLING_LONGS];
    if (draw < job.take[SAMPLING_KEYS]) collect_key(key, key_len);
    if (value) sample_value(context, pos, draw);
    return !value || (!sampled_enough() && clock_monotonic_us() < job.deadline_us);
}

/* Takes a bucket into the sample, or what is left of it. The bucket may change meanwhile: then some
 * of it is missed, or taken twice. */
static void sample_bucket(keyed_map *s, uint32_t bucket) {
    job.seen = 0;
    if (map_each(s->m, bucket, sample_record, s->m)) {
        job.seen_before = 0;
    } else {
        job.seen_before = job.seen;
        maps_cursor_again(&job.cursor, s, bucket);
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Goes over all maps, with chances for each kind. */
static void start_round(uint64_t shorts, uint64_t longs, uint64_t keys) {
    const uint64_t chance[SAMPLING_KINDS] = {shorts, longs, keys};
    uint64_t most = 0;
    for (int kind = 0; kind < SAMPLING_KINDS; kind++)
        if (chance[kind] > most) most = chance[kind];
    job.visit = most < CODEC_SAMPLE_ALL / SPREAD ? most * SPREAD : CODEC_SAMPLE_ALL;
    for (int kind = 0; kind < SAMPLING_KINDS; kind++) {
        job.chance[kind] = chance[kind];
        job.take[kind] = codec_sample_chance(job.visit, chance[kind]);
    }
    job.seen_before = 0;
    maps_cursor_start(&job.cursor);
}

static size_t at_most(uint64_t bytes, size_t most) {
    return bytes < most ? (size_t)bytes : most;
}

void sampling_start(bool trial, size_t wanted) {
    map_totals all = maps_totals().totals;
    uint64_t values = codec_sample_chance(all.value_bytes, wanted);
    job.wanted = wanted;
    job.again = false;
    job.trial = trial;
    job.last_stem_len = 0;
    trial_start(TRIAL_KEY, at_most(all.key_bytes, CODEC_SAMPLE_KEYS));
    trial_start(TRIAL_VALUE, at_most(all.value_bytes, wanted));
    start_round(values, values, codec_sample_chance(all.key_bytes, CODEC_SAMPLE_KEYS));
}

/* Of a kind of values that has come to little there is as much as was found and, for each of these,
 * as much as was passed over: the chance that gives enough of it, after forgetting what was taken.
 * 0: there is enough. */
static uint64_t chance_again(int kind, size_t all_used) {
    collection *c = &job.samples[kind];
    if (c->used >= ENOUGH(job.wanted) || c->used <= all_used / HARDLY ||
        job.chance[kind] == CODEC_SAMPLE_ALL)
        return 0;
    double all = (double)c->used * (double)CODEC_SAMPLE_ALL / (double)job.chance[kind];
    forget(c);
    return codec_sample_chance((uint64_t)all, job.wanted);
}

/* At the end of a round. False: there is another. */
static bool is_whole(void) {
    if (job.again) return true;
    size_t used = job.samples[SAMPLING_SHORTS].used + job.samples[SAMPLING_LONGS].used;
    uint64_t shorts = chance_again(SAMPLING_SHORTS, used),
             longs = chance_again(SAMPLING_LONGS, used);
    if (shorts == 0 && longs == 0) return true;
    job.again = true;
    start_round(shorts, longs, 0);
    return false;
}

bool sampling_step(uint64_t deadline_us) {
    keyed_map *s;
    uint32_t bucket;
    job.deadline_us = deadline_us;
    while (!sampled_enough() && maps_cursor_next(&job.cursor, &s, &bucket)) {
        bool wanted = job.seen_before > 0 || next_random() < job.visit;
        if (wanted && maps_served(s)) sample_bucket(s, bucket);
        if (clock_monotonic_us() >= deadline_us) return false;
    }
    return is_whole();
}

/* ---- what was taken -------------------------------------------------------------------------- */

size_t sampling_count(sampling_kind kind) {
    return job.samples[kind].count;
}

phrase_sample *sampling_append(phrase_sample *array, sampling_kind kind) {
    for (const chunk *from = job.samples[kind].first; from; from = from->next) {
        for (uint32_t at = 0, len; at < from->used; at += len) {
            memcpy(&len, from->bytes + at, sizeof len);
            at += (uint32_t)sizeof len;
            *array++ = (phrase_sample){from->bytes + at, len};
        }
    }
    return array;
}
