/* train.c: learning a codec from what is stored. See train.h. */
#include "background/train.h"

#include "core/codec/codec_file.h"
#include "core/codec/codec_train.h"
#include "core/base/pace.h"
#include "core/base/stem.h"
#include "background/evict.h"
#include "background/trial.h"
#include "server/waiting.h"
#include "server/clock.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Neighbours are often alike: so many times as many buckets are visited as would give the sample,
 * and as much less is taken of each. */
#define SPREAD 8
/* Less than 1 in this of the sample is not looked for any longer. */
#define HARDLY 16
/* A sample of a kind of values that is as good as whole. */
#define ENOUGH (CODEC_SAMPLE_VALUES / 4 * 3)
#define GROWN  4 /* times the data, since the last sample was taken */
/* Of ckv.maxmemory a codec takes no more, or it would fill it when that is lowered. */
#define CODEC_LIMIT_SHARE(n) ((n) / 8)
/* A codec is given up that takes more than it may by so many times. */
#define OUTSIZED 2
/* Of a core, for the thread that learns while no client waits, and something is known already: see
 * core/base/pace.h. */
#define TRAINING_PERCENT 33
/* Data that has grown by a quarter is worth a training when nothing is written for a while. */
#define GROWN_QUIETLY(n) ((n) + (n) / 4)
#define QUIET_US         3000000
/* What new dictionaries must save of what is stored. Per cent. */
#define WORTH_IT 1

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

enum { SHORTS, LONGS, KEYS, KINDS }; /* of samples: values, see CODEC_LONG, and stems of keys */

static struct {
    bool sampling;
    bool again; /* for kinds of values of which the first time gave little */
    maps_cursor cursor;
    uint32_t seen, seen_before; /* records of the bucket: in this step, in those before it */
    uint64_t deadline_us;       /* of the step */
    /* Chances, of CODEC_SAMPLE_ALL: of each kind to be taken; of its bucket to be visited, and
     * then, of it to be taken there. */
    uint64_t chance[KINDS], visit, take[KINDS];
    uint64_t random;
    collection samples[KINDS];
    uint8_t last_stem[64];
    size_t last_stem_len;
    uint64_t data_bytes; /* raw, when the sampling began */
    size_t max_bytes;
    int level;
    bool trial;       /* the current codec may stay: some records are kept to compare */
    codec *candidate; /* what was learned, while it is on trial */
    waiting clients;  /* of the training that runs */
    waiting later;    /* who came during it: of the next one, which will know what is stored now */
} job;

static atomic_bool learning;
static atomic_uint percent;      /* of a core, for the thread */
static _Atomic(codec *) learned; /* by the thread, until the main thread takes it */
static atomic_bool finished;     /* the thread is done, with or without a codec */

/* When the server was last seen to have written something, and how much it had by then. */
static struct {
    uint64_t written;
    uint64_t at_us;
} last_write;

void train_start(void) {
    maps_cursor_register(&job.cursor);
    job.random = 0x9e3779b97f4a7c15ULL;
}

bool train_running(void) {
    return job.sampling || atomic_load(&learning);
}

/* ---- sampling -------------------------------------------------------------------------------- */

static bool add_chunk(collection *c) {
    chunk *added = malloc(CHUNK_BYTES);
    if (!added) return false;
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

static void forget(collection *c) {
    for (chunk *at = c->first, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    *c = (collection){0};
}

/* Takes a while: so it is for the thread that has learned from them. */
static void forget_samples(void) {
    for (int kind = 0; kind < KINDS; kind++) forget(&job.samples[kind]);
}

/* Neighbours share their stem, and it is stored once: it counts once. */
static void collect_key(const uint8_t *key, size_t len) {
    uint8_t suffix;
    size_t stem_len = stem_split(key, len, &suffix);
    if (stem_len > MAP_KEY_MAX || job.samples[KEYS].used + stem_len > CODEC_SAMPLE_KEYS) return;
    bool again = stem_len == job.last_stem_len && stem_len <= sizeof job.last_stem &&
                 !memcmp(key, job.last_stem, stem_len);
    if (again) return;
    if (!job.trial || !trial_keeps(TRIAL_KEY, key, stem_len))
        collect(&job.samples[KEYS], key, stem_len);
    job.last_stem_len = stem_len;
    if (stem_len <= sizeof job.last_stem) memcpy(job.last_stem, key, stem_len);
}

/* Random numbers below CODEC_SAMPLE_ALL. */
static uint64_t next_random(void) {
    job.random ^= job.random << 13;
    job.random ^= job.random >> 7;
    job.random ^= job.random << 17;
    return job.random >> 32;
}

static bool has_enough(int kind) {
    return job.chance[kind] == 0 || job.samples[kind].used >= CODEC_SAMPLE_VALUES;
}

static bool sampled_enough(void) {
    return has_enough(SHORTS) && has_enough(LONGS);
}

/* What is learned is of no use for values longer than CODEC_PHRASE_MAX. */
static void sample_value(map *m, const map_pos *pos, uint64_t draw) {
    size_t len = map_value_len(m, pos);
    if (len == CODEC_NO_ROOM || len == 0 || len > CODEC_PHRASE_MAX) return;
    int kind = len >= CODEC_LONG ? LONGS : SHORTS;
    if (draw >= job.take[kind] || has_enough(kind)) return;
    const uint8_t *value = map_value(m, pos, &len);
    if (!value) return;
    if (len > CODEC_SAMPLE_VALUE) len = CODEC_SAMPLE_VALUE;
    if (!job.trial || !trial_keeps(TRIAL_VALUE, value, len))
        collect(&job.samples[kind], value, len);
}

/* Stops in the midst of a bucket if there is no time for more. */
static bool sample_record(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    if (job.seen++ < job.seen_before) return true;
    uint64_t draw = next_random();
    bool value = draw < job.take[SHORTS] || draw < job.take[LONGS];
    if (draw < job.take[KEYS]) collect_key(key, key_len);
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

static uint64_t raw_bytes(void) {
    map_totals all = maps_totals().totals;
    return all.key_bytes + all.value_bytes;
}

/* Bytes that a codec for so much raw data may take. */
static size_t allowance(uint64_t raw) {
    uint64_t limit = (uint64_t)ckv.config.maxmemory, bytes = CODEC_SHARE(raw);
    if (limit > 0 && bytes > CODEC_LIMIT_SHARE(limit)) bytes = CODEC_LIMIT_SHARE(limit);
    if (bytes < CODEC_BYTES_MIN) bytes = CODEC_BYTES_MIN;
    if (bytes > (uint64_t)ckv.config.dictionary_size) bytes = (uint64_t)ckv.config.dictionary_size;
    return bytes;
}

/* Whether the current codec is one for much more data, or for a much higher limit. */
static bool outsized(uint64_t raw) {
    const codec *c = codecs_current(&ckv.shared.codecs);
    uint64_t limit = (uint64_t)ckv.config.maxmemory, least = CODEC_BYTES_MIN;
    uint64_t by_data = CODEC_SHARE(raw) > least ? CODEC_SHARE(raw) : least;
    uint64_t by_limit = CODEC_LIMIT_SHARE(limit) > least ? CODEC_LIMIT_SHARE(limit) : least;
    return (c->bytes > OUTSIZED * by_data && c->data_bytes > GROWN * raw) ||
           (limit > 0 && c->bytes > OUTSIZED * by_limit);
}

/* Whether the current codec may stay: no client has asked for another, and it takes no more than it
 * may. */
static bool may_stay(void) {
    return job.clients.count == 0 && !outsized(raw_bytes());
}

/* Goes over all maps, with chances for each kind. */
static void start_round(uint64_t shorts, uint64_t longs, uint64_t keys) {
    const uint64_t chance[KINDS] = {shorts, longs, keys};
    uint64_t most = 0;
    for (int kind = 0; kind < KINDS; kind++)
        if (chance[kind] > most) most = chance[kind];
    job.visit = most < CODEC_SAMPLE_ALL / SPREAD ? most * SPREAD : CODEC_SAMPLE_ALL;
    for (int kind = 0; kind < KINDS; kind++) {
        job.chance[kind] = chance[kind];
        job.take[kind] = codec_sample_chance(job.visit, chance[kind]);
    }
    job.seen_before = 0;
    maps_cursor_start(&job.cursor);
}

/* At first it is not known how much there is of values of either kind: it may be all. */
static void start_sampling(void) {
    map_totals all = maps_totals().totals;
    uint64_t values = codec_sample_chance(all.value_bytes, CODEC_SAMPLE_VALUES);
    job.sampling = true;
    job.again = false;
    job.trial = may_stay();
    job.data_bytes = raw_bytes();
    job.level = (int)ckv.config.compression_level;
    job.max_bytes = allowance(job.data_bytes);
    start_round(values, values, codec_sample_chance(all.key_bytes, CODEC_SAMPLE_KEYS));
}

/* Of a kind of values that has come to little there is as much as was found and, for each of these,
 * as much as was passed over: the chance that gives enough of it, after forgetting what was taken.
 * 0: there is enough. */
static uint64_t chance_again(int kind, size_t all_used) {
    collection *c = &job.samples[kind];
    if (c->used >= ENOUGH || c->used <= all_used / HARDLY || job.chance[kind] == CODEC_SAMPLE_ALL)
        return 0;
    double all = (double)c->used * (double)CODEC_SAMPLE_ALL / (double)job.chance[kind];
    forget(c);
    return codec_sample_chance((uint64_t)all, CODEC_SAMPLE_VALUES);
}

/* At the end of a round. False: there is another. */
static bool is_whole(void) {
    if (job.again) return true;
    size_t used = job.samples[SHORTS].used + job.samples[LONGS].used;
    uint64_t shorts = chance_again(SHORTS, used), longs = chance_again(LONGS, used);
    if (shorts == 0 && longs == 0) return true;
    job.again = true;
    start_round(shorts, longs, 0);
    return false;
}

/* Samples for a while. False: it is to go on. */
static bool sample_step(uint64_t deadline_us) {
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

/* ---- learning, on a thread of its own -------------------------------------------------------- */

/* Appends what was collected to an array of samples; returns its new end. */
static phrase_sample *append(phrase_sample *array, const collection *c) {
    for (const chunk *from = c->first; from; from = from->next) {
        for (uint32_t at = 0, len; at < from->used; at += len) {
            memcpy(&len, from->bytes + at, sizeof len);
            at += (uint32_t)sizeof len;
            *array++ = (phrase_sample){from->bytes + at, len};
        }
    }
    return array;
}

/* Moves a codec from libc's memory to the server's, by way of its file. */
static codec *moved_to_server(codec *c) {
    if (!c) return NULL;
    size_t len = codec_save_size(c);
    uint8_t *file = malloc(len);
    if (file) codec_save(c, file);
    codec_free(&mem_libc, c);
    c = file ? codec_load(&ckv.mem, file, len, job.level) : NULL;
    free(file);
    return c;
}

/* Works in libc's memory, as the sampling does: what it takes for a moment is many times what it
 * leaves, and must not count against maxmemory, which would evict what is being learned from. */
static codec *learn(void) {
    size_t count = job.samples[SHORTS].count + job.samples[LONGS].count;
    if (count + job.samples[KEYS].count == 0) return NULL; /* all was deleted meanwhile */
    phrase_sample *keys = malloc((job.samples[KEYS].count + 1) * sizeof *keys);
    phrase_sample *values = malloc((count + 1) * sizeof *values);
    codec *c = NULL;
    if (keys && values) {
        append(keys, &job.samples[KEYS]);
        append(append(values, &job.samples[SHORTS]), &job.samples[LONGS]);
        codec_samples samples = {keys, job.samples[KEYS].count, values, count};
        c = codec_train(&mem_libc, &samples, job.max_bytes, job.level);
    }
    free(keys);
    free(values);
    return moved_to_server(c);
}

static void *run(void *unused) {
    (void)unused;
    pace_follow(&percent);
    atomic_store(&learned, learn());
    forget_samples();
    malloc_trim(0); /* where malloc is glibc's, it would keep what it can't foresee to need */
    atomic_store(&finished, true);
    return NULL;
}

static void start_learning(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    job.sampling = false;
    job.last_stem_len = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    atomic_store(&finished, false);
    atomic_store(&learning, true);
    bool urgent = job.clients.count > 0 || job.later.count > 0 ||
                  codecs_current_id(&ckv.shared.codecs) == CODEC_RAW;
    atomic_store(&percent, urgent ? 100 : TRAINING_PERCENT);
    if (pthread_create(&thread, &attributes, run, NULL) != 0) {
        ckv_log("warning", "can't start a thread to train on");
        forget_samples();
        atomic_store(&finished, true);
    }
    pthread_attr_destroy(&attributes);
}

/* The training is over. */
static void finish(const char *error) {
    atomic_store(&learning, false);
    job.candidate = NULL;
    trial_clear();
    waiting_answer(&job.clients, error);
}

/* Takes what was learned into use. True if there is a new codec. */
static bool install(codec *c) {
    uint32_t id = CODECS_MAX;
    if (c) {
        codec_set_origin(c, job.data_bytes, clock_now_ms());
        id = codecs_add(&ckv.shared.codecs, c);
        if (id == CODECS_MAX) codec_free(&ckv.mem, c);
    }
    if (id == CODECS_MAX) {
        ckv_log("warning", "a training failed: out of memory, or no data left to learn from");
        finish("ERR the training failed");
        return false;
    }
    codecs_use(&ckv.shared.codecs, (uint8_t)id);
    ckv.stats.trainings++;
    ckv_log("notice", "trained on %.1f MB of data: dictionaries of %zu KB in use",
            (double)c->data_bytes / 1e6, c->bytes / 1024);
    finish(NULL);
    return true;
}

/* Takes into use what was learned, if that is worth it. True if there is a new codec. */
static bool conclude(uint64_t deadline_us) {
    if (!job.candidate) {
        job.candidate = atomic_exchange(&learned, NULL);
        evict_reserve(0);
    }
    codec *c = job.candidate;
    if (!c || !job.trial || !may_stay()) return install(c);
    if (!trial_step(c, deadline_us)) return false;
    double saved = trial_saved(c);
    if (saved >= WORTH_IT) return install(c);
    codecs_confirm(&ckv.shared.codecs, job.data_bytes);
    ckv_log("notice", "trained on %.1f MB of data: new dictionaries would save %.1f%%, not taken",
            (double)job.data_bytes / 1e6, saved);
    codec_free(&ckv.mem, c);
    finish(NULL);
    return false;
}

/* ---- when ------------------------------------------------------------------------------------ */

static bool quiet(void) {
    uint64_t now_us = clock_monotonic_us();
    uint64_t written = codecs_written_bytes(&ckv.shared.codecs);
    if (last_write.written != written) {
        last_write.written = written;
        last_write.at_us = now_us;
    }
    return now_us - last_write.at_us >= QUIET_US;
}

/* So little is left that it takes less room without a codec. */
static bool give_up(void) {
    if (raw_bytes() >= CODEC_BYTES_MIN || !outsized(raw_bytes())) return false;
    codecs_use(&ckv.shared.codecs, CODEC_RAW);
    ckv_log("notice", "hardly any data is left: dictionaries are given up");
    return true;
}

static bool due(void) {
    uint64_t raw = raw_bytes();
    bool at_rest = quiet();
    if (outsized(raw)) return true;
    if (raw < (uint64_t)ckv.config.train_after) return false;
    const codecs *all = &ckv.shared.codecs;
    uint64_t known = codecs_data_bytes(all);
    /* Where nothing was worth learning, what is written in the place of other data may be. */
    uint64_t seen = codecs_current_id(all) == CODEC_RAW ? known + codecs_written_bytes(all) : raw;
    return seen >= GROWN * known || codecs_drifted(all) ||
           (at_rest && seen >= GROWN_QUIETLY(known));
}

bool train_step(uint64_t deadline_us) {
    if (atomic_load(&learning)) return atomic_load(&finished) && conclude(deadline_us);
    if (!job.sampling) {
        if (!job.later.count && give_up()) return true;
        if (!job.later.count && !due()) return false;
        waiting joined = job.clients;
        job.clients = job.later;
        job.later = joined;
        start_sampling();
    }
    if (!sample_step(deadline_us)) return false;
    evict_reserve(job.max_bytes);
    if (evict_reserved()) start_learning();
    return false;
}

int train_now(RedisModuleCtx *ctx) {
    if (maps_totals().totals.records == 0)
        return RedisModule_ReplyWithError(ctx, "ERR there are no records to train on");
    waiting_add(ctx, &job.later);
    if (job.later.count > 0) atomic_store(&percent, 100);
    return REDISMODULE_OK;
}
