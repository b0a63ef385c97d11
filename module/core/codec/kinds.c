/*
 * kinds.c: see kinds.h.
 *
 * A naive Bayes model, learned without labels by hard EM ("k-means of likelihoods"): samples go to
 * the kind whose model makes them most likely, models are counted of the samples that they have,
 * and again. Kinds come of splitting: the one that is split is the one where that makes all samples
 * most likely, as long as it is worth it.
 */
#include "codec/kinds.h"
#include "base/pace.h"

#include <math.h>
#include <string.h>

#define PAIRS       32   /* of a value, spread evenly, that are looked at */
#define LOOKED_INTO 4096 /* bytes of a value, at its front */
#define LEN_COUNTS  4    /* times as much as a pair */
#define SCALE       32   /* a bit, in scores */
_Static_assert((PAIRS + LEN_COUNTS) * -KINDS_SCORE_LEAST <= INT16_MAX, "sums of scores");

#define LOOKED_AT 8192 /* samples, at most */
#define SEEDS     4    /* samples that a split begins with */
#define ATTEMPTS  8    /* to split */
#define ROUNDS    12
#define SMOOTHING 0.25f
/* A kind has at least one of the samples looked at in so many. */
#define SMALLEST 64
/* A kind is tried to be split if that makes its samples more likely by one part in so many. */
#define TRIED 100

/* The features of a value: a number for each pair of bytes, and one for its length. */
typedef struct features {
    uint16_t list[PAIRS + 1];
    uint8_t pairs;
} features;

static inline uint32_t hash(uint32_t pair) {
    return pair * 0x9e3779b1u >> 22;
}

static inline features features_of(const uint8_t *value, size_t n) {
    features f;
    if (n > LOOKED_INTO) n = LOOKED_INTO;
    size_t pairs = n - 1, step = 1;
    if (pairs > PAIRS) {
        step = pairs / PAIRS;
        pairs = PAIRS;
    }
    for (size_t i = 0; i < pairs; i++)
        f.list[i] = (uint16_t)hash((uint32_t)(value[i * step] | value[i * step + 1] << 8));
    f.pairs = (uint8_t)pairs;
    f.list[pairs] = (uint16_t)hash(0x10000u + 63u - (uint32_t)__builtin_clzll(n));
    return f;
}

typedef int16_t lanes __attribute__((vector_size(16)));
_Static_assert(sizeof(lanes) == KINDS_LANES * sizeof(int16_t), "a row is a vector");

static inline lanes row(const kinds_model *model, uint32_t feature) {
    lanes r;
    memcpy(&r, model->score[feature], sizeof r);
    return r;
}

static inline lanes sum(const kinds_model *model, const features *f) {
    lanes all = row(model, f->list[f->pairs]) * LEN_COUNTS;
    for (uint32_t i = 0; i < f->pairs; i++) all += row(model, f->list[i]);
    return all;
}

static inline uint32_t greatest(lanes all) {
    uint32_t best = 0;
    for (uint32_t k = 1; k < KINDS_LANES; k++)
        if (all[k] > all[best]) best = k;
    return best;
}

uint32_t kinds_of(const kinds_model *model, const void *value, size_t n) {
    features f = features_of(value, n);
    return model->kind[greatest(sum(model, &f))];
}

/* ---- learning -------------------------------------------------------------------------------- */

typedef struct learner {
    features sample[LOOKED_AT];
    uint8_t of[LOOKED_AT];                   /* a sample's kind */
    uint8_t trial[LOOKED_AT];                /* while a split is tried */
    uint8_t best[LOOKED_AT], all[LOOKED_AT]; /* the best split of a kind, and of all kinds */
    uint32_t n, kinds;
    double most; /* samples of a kind that is split only if that is worth a trial */
    uint64_t random;
    float count[KINDS_LANES][KINDS_FEATURES], total[KINDS_LANES];
    kinds_model model;
} learner;

static uint32_t random_below(learner *l, uint32_t n) {
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((l->random >> 32) * n >> 32);
}

static void count_sample(learner *l, uint32_t kind, const features *f) {
    for (uint32_t i = 0; i < f->pairs; i++) l->count[kind][f->list[i]]++;
    l->count[kind][f->list[f->pairs]] += LEN_COUNTS;
    l->total[kind] += (float)(f->pairs + LEN_COUNTS);
}

static void count_none(learner *l) {
    memset(l->count, 0, sizeof l->count);
    memset(l->total, 0, sizeof l->total);
}

static void count_all(learner *l, const uint8_t *of) {
    count_none(l);
    for (uint32_t i = 0; i < l->n; i++) count_sample(l, of[i], &l->sample[i]);
}

static void make_model(learner *l) {
    for (uint32_t k = 0; k < KINDS_LANES; k++) {
        float all = log2f(l->total[k] + SMOOTHING * KINDS_FEATURES);
        for (uint32_t f = 0; f < KINDS_FEATURES; f++) {
            float score = (log2f(l->count[k][f] + SMOOTHING) - all) * SCALE;
            bool none = l->total[k] == 0 || score < KINDS_SCORE_LEAST;
            l->model.score[f][k] = none ? KINDS_SCORE_LEAST : (int16_t)score;
        }
    }
}

/* Gives samples of kind `from` (all: KINDS_LANES) to where they fit best; `a` and `b`, if from is
 * one kind, are the only ones to choose of. Returns how likely all of these are, in scores. */
static double assign(learner *l, uint8_t *of, uint32_t from, uint32_t a, uint32_t b) {
    double likely = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (from < KINDS_LANES && l->of[i] != from) continue;
        lanes all = sum(&l->model, &l->sample[i]);
        uint32_t best = from == KINDS_LANES ? greatest(all) : all[b] > all[a] ? b : a;
        of[i] = (uint8_t)best;
        likely += all[best];
    }
    return likely;
}

/* How likely the samples of a kind are under their model. */
static double likelihood(learner *l, uint32_t kind) {
    double likely = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->of[i] == kind) likely += sum(&l->model, &l->sample[i])[kind];
    return likely;
}

static uint32_t any_of(learner *l, uint32_t kind) {
    uint32_t i = random_below(l, l->n);
    while (l->of[i] != kind) i = i + 1 < l->n ? i + 1 : 0;
    return i;
}

/* Splits a kind, beginning with some of its samples; returns how likely all of it is then. Who
 * belongs to the new one stands in l->trial. */
static double split_once(learner *l, uint32_t kind) {
    double likely = 0, before = 0;
    memcpy(l->trial, l->of, l->n);
    count_none(l);
    for (uint32_t i = 0; i < SEEDS; i++)
        count_sample(l, i % 2 ? l->kinds : kind, &l->sample[any_of(l, kind)]);
    for (int round = 0; round < ROUNDS; round++) {
        pace_keep();
        make_model(l);
        likely = assign(l, l->trial, kind, kind, l->kinds);
        if (round > 2 && likely - before < -before / 1000) break;
        before = likely;
        count_all(l, l->trial);
    }
    return likely;
}

static uint32_t count_of(const learner *l, const uint8_t *of, uint32_t kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->n; i++) count += of[i] == kind;
    return count;
}

static bool large_enough(const learner *l, const uint8_t *of, uint32_t kind) {
    uint32_t count = count_of(l, of, kind);
    return count > 0 && count >= l->n / SMALLEST;
}

/* Looks for the split of a kind that makes its samples most likely, and leaves it in l->best;
 * returns by how much, in scores: 0 if there is none that is worth a trial. */
static double best_split(learner *l, uint32_t kind) {
    double before = likelihood(l, kind), gain = 0;
    kinds_model model = l->model;
    for (int i = 0; i < ATTEMPTS; i++) {
        double likely = split_once(l, kind);
        bool sane = large_enough(l, l->trial, kind) && large_enough(l, l->trial, l->kinds);
        if (!sane || likely - before <= gain) continue;
        gain = likely - before;
        memcpy(l->best, l->trial, l->n);
    }
    l->model = model;
    return gain * TRIED < -before && count_of(l, l->of, kind) <= l->most ? 0 : gain;
}

/* Gives all samples to where they fit best, a few times. */
static void assign_all(learner *l) {
    for (int round = 0; round < ROUNDS; round++) {
        pace_keep();
        count_all(l, l->of);
        make_model(l);
        assign(l, l->of, KINDS_LANES, 0, 0);
    }
}

/* The best split of all goes to l->all; whose it is, l->kinds: there is none. */
static uint32_t choose(learner *l) {
    double gain = 0;
    uint32_t kind = l->kinds;
    assign_all(l);
    for (uint32_t k = 0; k < l->kinds; k++) {
        double more = large_enough(l, l->of, k) ? best_split(l, k) : 0;
        if (more <= gain) continue;
        gain = more;
        kind = k;
        memcpy(l->all, l->best, l->n);
    }
    return kind;
}

/* Looks at samples at even distances in all their bytes: what takes more memory counts more. */
static void pick(learner *l, const phrase_sample *samples, size_t n) {
    double all = 0, at = 0;
    for (size_t i = 0; i < n; i++) all += samples[i].len;
    double step = all / LOOKED_AT;
    for (size_t i = 0; i < n && step > 0; i++)
        for (at += samples[i].len; at >= step && l->n < LOOKED_AT; at -= step)
            l->sample[l->n++] = features_of(samples[i].data, samples[i].len);
}

uint32_t kinds_learn(const mem *m, const phrase_sample *samples, size_t n, double most,
                     kinds_model *model) {
    learner *l = m->alloc(sizeof *l);
    if (!l) return 0;
    memset(l, 0, sizeof *l);
    l->kinds = 1;
    pick(l, samples, n);
    l->most = most * l->n;
    for (uint32_t kind; l->kinds < KINDS_MAX && (kind = choose(l)) < l->kinds; l->kinds++)
        memcpy(l->of, l->all, l->n);
    assign_all(l);
    *model = l->model;
    for (uint32_t k = 0; k < KINDS_LANES; k++) model->kind[k] = k < l->kinds ? (uint8_t)k : 0;
    uint32_t kinds = l->kinds;
    m->free(l);
    return kinds;
}
