/* train.c: learning a codec from what is stored. See train.h. */
#include "background/train.h"

#include "background/evict.h"
#include "background/lull.h"
#include "background/sampling.h"
#include "background/trial.h"
#include "core/base/pace.h"
#include "core/codec/codec_file.h"
#include "core/codec/codec_train.h"
#include "core/map/map_uncounted.h"
#include "keyspace/maps.h"
#include "server/clock.h"
#include "server/libc_heap.h"
#include "server/thread.h"
#include "server/waiting.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#define GROWN 4 /* times the data, since the last sample was taken */
/* Until the first codec is there everything takes many times the room: it is learned from this much
 * at most, in seconds, and counts as learned from no more. Bytes. */
#define FIRST_SAMPLE (2u << 20)
/* A codec takes this share of ckv.maxmemory at most, 1 in n, or it would fill it when that is
 * lowered. */
#define LIMIT_SHARE 8
/* A codec is given up that takes more than it may by so many times. */
#define OUTSIZED 2
/* Of a core, for the thread that learns while no client waits, and something of the data is known
 * already: see core/base/pace.h. */
#define TRAINING_PERCENT 33
/* Data that has grown by a quarter is worth a training in a lull. */
#define GROWN_QUIETLY(n) ((n) + (n) / 4)
/* What new dictionaries must save of what is stored. Per cent. */
#define WORTH_IT 1
/* After a training that failed, until one begins that nobody asks for. */
#define AGAIN_US 60000000

static struct {
    bool sampling;
    uint64_t data_bytes;    /* raw, when the sampling began */
    uint64_t least_bytes;   /* raw, that were stored at any time since then */
    uint64_t loadings;      /* ckv.loadings, then */
    uint64_t learned_bytes; /* that what is learned stands for */
    uint64_t written_bytes; /* by codecs_written_bytes(), then */
    size_t max_bytes;
    int level;
    bool trial;        /* the current codec may stay: some records are kept to compare */
    uint8_t current;   /* it is kept meanwhile */
    waiting clients;   /* of the training that runs */
    waiting later;     /* who came during it: of the next one, which will know what is stored now */
    uint64_t again_us; /* none begins by itself before */
    bool in_vain;      /* there was nothing to learn from, last time */
    bool threadless;   /* there was no thread to learn on, last time */
    uint8_t offered;   /* CODEC_RAW: none is */
} job;

static atomic_bool learning;
static atomic_uint percent;      /* of a core, for the thread */
static atomic_bool unwanted;     /* what it learns */
static _Atomic(codec *) learned; /* by the thread, until the main thread takes it */
static atomic_bool finished;     /* the thread is done, with or without a codec */

/* What the thread learns in: libc's memory, as the sampling does, for what it takes for a moment is
 * many times what it leaves, and must not count against maxmemory, which would evict what is being
 * learned from. For what nobody wants any more there is none left, so that it ends as it would
 * without. */
static mem thread_mem;

static void *alloc_while_wanted(size_t bytes) {
    return atomic_load(&unwanted) ? NULL : mem_libc.alloc(bytes);
}

void train_start(void) {
    sampling_init();
    thread_mem = mem_libc;
    thread_mem.alloc = alloc_while_wanted;
}

bool train_running(void) {
    return job.sampling || atomic_load(&learning);
}

/* Bytes that ckv.maxmemory lets a codec take, for however much data. */
static uint64_t limited(void) {
    uint64_t share = (uint64_t)ckv.config.maxmemory / LIMIT_SHARE, least = CODEC_BYTES_MIN;
    if (ckv.config.maxmemory == 0) return UINT64_MAX;
    return share > least ? share : least;
}

/* Bytes that a codec for so much raw data may take. */
static size_t allowance(uint64_t raw) {
    uint64_t most = limited(), set = (uint64_t)ckv.config.dictionary_size;
    return codec_allowance(raw, set < most ? set : most);
}

/* Whether the current codec is one for much more data, or for a much higher limit. */
static bool outsized(uint64_t raw) {
    const codec *c = codecs_current(&ckv.shared.codecs);
    uint64_t by_data = codec_allowance(raw, UINT64_MAX);
    /* The first codec was learned from less than it is for. */
    bool by_far = c->data_bytes > GROWN * raw || c->bytes > GROWN * by_data;
    return (by_far && c->bytes > OUTSIZED * by_data) || c->bytes / OUTSIZED > limited();
}

/* Whether the current codec may stay: no client has asked for another, and it takes no more than it
 * may. */
static bool may_stay(void) {
    return job.clients.count == 0 && !outsized(maps_raw_bytes());
}

static bool nothing_known(void) {
    return codecs_current_id(&ckv.shared.codecs) == CODEC_RAW;
}

/* Hardly anything of the data is known. */
static bool is_new(void) {
    return nothing_known() ||
           maps_raw_bytes() >= GROWN * GROWN * codecs_data_bytes(&ckv.shared.codecs);
}

static void start_sampling(void) {
    bool first = nothing_known() && job.clients.count == 0;
    size_t sample = first ? FIRST_SAMPLE : CODEC_SAMPLE_VALUES;
    job.sampling = true;
    job.trial = may_stay();
    job.data_bytes = job.least_bytes = maps_raw_bytes();
    maps_mark();
    job.loadings = ckv.loadings;
    job.learned_bytes = first && job.data_bytes > sample ? sample : job.data_bytes;
    job.written_bytes = codecs_written_bytes(&ckv.shared.codecs);
    job.level = (int)ckv.config.compression_level;
    sampling_start(job.trial, sample);
}

/* While a training runs. */
static void watch_data(void) {
    uint64_t raw = maps_raw_bytes();
    if (raw < job.least_bytes) job.least_bytes = raw;
}

/* Whether half of what is learned from has gone meanwhile, as is seen by there being less or by
 * what whole databases took along, or a file has taken the place of it all: other data may be there
 * now, for which what is learned is no good. */
static bool data_is_gone(void) {
    uint64_t half = job.data_bytes / 2;
    return ckv.loadings != job.loadings || job.least_bytes < half || maps_flushed_bytes() > half;
}

/* ---- learning, on a thread of its own -------------------------------------------------------- */

/* Moves a codec from libc's memory to the server's, by way of its file. */
static codec *moved_to_server(codec *c) {
    if (!c) return NULL;
    size_t len = codec_save_size(c);
    uint8_t *file = malloc(len);
    if (file) codec_save(c, file);
    codec_free(&thread_mem, c);
    c = file ? codec_load(&ckv.mem, file, len, job.level) : NULL;
    free(file);
    return c;
}

static codec *learn(void) {
    size_t key_count = sampling_count(SAMPLING_KEYS);
    size_t count = sampling_count(SAMPLING_SHORTS) + sampling_count(SAMPLING_LONGS);
    phrase_sample *keys = malloc((key_count + 1) * sizeof *keys);
    phrase_sample *values = malloc((count + 1) * sizeof *values);
    codec *c = NULL;
    if (keys && values) {
        sampling_append(keys, SAMPLING_KEYS);
        sampling_append(sampling_append(values, SAMPLING_SHORTS), SAMPLING_LONGS);
        codec_samples samples = {keys, key_count, values, count, job.data_bytes};
        c = codec_train(&thread_mem, &samples, job.max_bytes, job.level);
    }
    free(keys);
    free(values);
    return moved_to_server(c);
}

/* Has it tried by the one that there is, if that may stay. NULL: out of memory. */
static codec *tried(codec *c) {
    if (!c || !job.trial) return c;
    const codec *current = codecs_get(&ckv.shared.codecs, job.current);
    if (trial_run(current, c, job.level)) return c;
    codec_free(&ckv.mem, c);
    return NULL;
}

static void *run(void *unused) {
    (void)unused;
    pace_follow(&percent);
    atomic_store(&learned, tried(learn()));
    sampling_forget();
    while (sampling_give_back()) pace_keep();
    libc_heap_trim();
    atomic_store(&finished, true);
    return NULL;
}

static void start_learning(void) {
    job.sampling = false;
    job.in_vain = false;
    atomic_store(&finished, false);
    atomic_store(&unwanted, false);
    atomic_store(&learning, true);
    bool waited_for = job.clients.count > 0 || job.later.count > 0;
    atomic_store(&percent, waited_for || is_new() ? 100 : TRAINING_PERCENT);
    job.current = codecs_current_id(&ckv.shared.codecs);
    codecs_retain(&ckv.shared.codecs, job.current);
    job.threadless = !thread_start(run);
    if (!job.threadless) return;
    sampling_forget();
    atomic_store(&finished, true);
}

/* The training is over. */
static void finish(const char *error) {
    atomic_store(&learning, false);
    trial_clear();
    waiting_answer(&job.clients, error);
}

/* What it has learned is no good. */
static void drop_training(void) {
    ckv_log("notice", "most of what a training has learned from is gone: nothing is taken of it");
    evict_reserve(0);
    job.sampling = false;
    finish("ERR most of the data that was learned from is gone");
}

/* The current codec, or none, is as good as it gets until the data has grown or changed. All of it
 * may have been deleted meanwhile. */
static void confirm(void) {
    uint64_t raw = maps_raw_bytes();
    codecs_confirm(&ckv.shared.codecs, raw < job.data_bytes ? raw : job.data_bytes,
                   job.written_bytes);
}

static void put_off(void) {
    job.again_us = clock_monotonic_us() + AGAIN_US;
}

static bool sampled_some(void) {
    return sampling_count(SAMPLING_SHORTS) + sampling_count(SAMPLING_LONGS) +
               sampling_count(SAMPLING_KEYS) >
           0;
}

/* There was nothing to learn from. A codec that takes more than it may stays so for a while. */
static void end_in_vain(void) {
    if (!job.in_vain)
        ckv_log("notice", "nothing to learn from: no values of up to 64 KB, and hardly any keys");
    job.in_vain = true;
    job.sampling = false;
    confirm();
    if (outsized(maps_raw_bytes())) put_off();
    finish("ERR the training failed");
}

/* Takes what was learned into use. True if there is a new codec. */
static bool install(codec *c) {
    uint32_t id = CODECS_MAX;
    if (c) {
        codec_set_origin(c, job.learned_bytes, clock_now_ms());
        id = codecs_add(&ckv.shared.codecs, c);
    }
    if (id == CODECS_MAX) {
        ckv_log("warning", "a training failed: %s",
                job.threadless ? "can't start a thread"
                : c            ? "there are as many dictionaries as can be"
                               : "out of memory");
        if (c) codec_free(&ckv.mem, c);
        put_off();
        finish("ERR the training failed");
        return false;
    }
    codecs_use(&ckv.shared.codecs, (uint8_t)id);
    ckv.stats.trainings++;
    ckv_log("notice",
            "trained on %.1f MB of data: dictionaries of %zu KB in use, kinds of values: %u",
            (double)c->data_bytes / 1e6, c->bytes / 1024, codec_kinds(c));
    finish(NULL);
    return true;
}

/* Takes into use what was learned, if that is worth it. True if there is a new codec. */
static bool conclude(void) {
    codec *c = atomic_exchange(&learned, NULL);
    const codec *current = codecs_get(&ckv.shared.codecs, job.current);
    evict_reserve(0);
    codecs_release(&ckv.shared.codecs, job.current);
    if (data_is_gone()) {
        if (c) codec_free(&ckv.mem, c);
        drop_training();
        return false;
    }
    if (!c || !job.trial || !may_stay()) return install(c);
    double saved = trial_saved(current, c);
    if (saved >= WORTH_IT) return install(c);
    confirm();
    ckv_log("notice", "trained on %.1f MB of data: new dictionaries would save %.1f%%, not taken",
            (double)job.data_bytes / 1e6, fmax(saved, 0));
    codec_free(&ckv.mem, c);
    finish(NULL);
    return false;
}

/* ---- when ------------------------------------------------------------------------------------ */

/* So little is left that it takes less room without a codec. */
static bool give_up(void) {
    if (maps_raw_bytes() >= CODEC_BYTES_MIN || !outsized(maps_raw_bytes())) return false;
    codecs_use(&ckv.shared.codecs, CODEC_RAW);
    ckv_log("notice", "hardly any data is left: dictionaries are given up");
    return true;
}

static bool grown_or_changed(void) {
    uint64_t raw = maps_raw_bytes();
    bool at_rest = lull();
    if (clock_monotonic_us() < job.again_us) return false;
    if (outsized(raw)) return true;
    if (raw < (uint64_t)ckv.config.train_after) return false;
    const codecs *all = &ckv.shared.codecs;
    uint64_t known = codecs_data_bytes(all);
    /* Where nothing was worth learning, what is written in the place of other data may be. */
    uint64_t seen = nothing_known() ? known + codecs_written_bytes(all) : raw;
    return seen >= GROWN * known || codecs_drifted(all) ||
           (at_rest && seen >= GROWN_QUIETLY(known));
}

void train_offer(uint8_t id) {
    job.offered = id;
}

/* True if it is in use now. What was said of how much it was learned from is another server's word.
 */
static bool take_offer(void) {
    codecs *all = &ckv.shared.codecs;
    uint8_t id = job.offered;
    job.offered = CODEC_RAW;
    if (id == CODEC_RAW || codecs_current_id(all) != CODEC_RAW || !codecs_in_use(all, id))
        return false;
    codecs_use(all, id);
    codecs_confirm(all, maps_raw_bytes(), 0);
    ckv_log("notice", "goes on with the dictionaries that have come with a map");
    return true;
}

static bool due(void) {
    return job.later.count > 0 || grown_or_changed();
}

bool train_step(uint64_t deadline_us) {
    if (take_offer()) return true;
    if (train_running())
        watch_data();
    else
        sampling_give_back(); /* of one that was dropped */
    if (atomic_load(&learning)) {
        if (data_is_gone()) atomic_store(&unwanted, true);
        return atomic_load(&finished) && conclude();
    }
    if (!job.sampling) {
        if (!job.later.count && give_up()) return true;
        if (!due()) return false;
        uncounted_count_out(&ckv.shared); /* what is gone may have made it seem more */
        if (!due()) return false;
        waiting joined = job.clients;
        job.clients = job.later;
        job.later = joined;
        start_sampling();
    }
    if (data_is_gone()) {
        sampling_forget();
        drop_training();
        return false;
    }
    if (!sampling_step(deadline_us)) return false;
    if (!sampled_some()) {
        end_in_vain();
        return false;
    }
    job.max_bytes = allowance(maps_raw_bytes());
    evict_reserve(job.max_bytes);
    if (evict_reserved()) start_learning();
    return false;
}

int train_now(RedisModuleCtx *ctx) {
    if (maps_totals().totals.records == 0)
        return RedisModule_ReplyWithError(ctx, "ERR there are no records to train on");
    if (waiting_add(ctx, &job.later)) atomic_store(&percent, 100);
    return REDISMODULE_OK;
}
