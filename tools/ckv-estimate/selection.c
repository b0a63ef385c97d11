/* selection.c: see selection.h. */
#include "selection.h"

#include "codec/codec_train.h"
#include "common/common.h"

#include <math.h>
#include <stdlib.h>

/* Of a sample that is not the whole store so much is learned from at most. */
#define LEARNED_MAX 0.75

bool selection_fits(const sampled *k) {
    return k->value && k->value_len <= CODEC_PHRASE_MAX && k->fetched == k->value_len;
}

/* Bytes of a value that a training looks at. */
static size_t looked_at(const sampled *k) {
    return k->value_len < CODEC_SAMPLE_VALUE ? k->value_len : CODEC_SAMPLE_VALUE;
}

static void sort_out(selection *chosen, const sample *s) {
    for (size_t i = 0; i < s->count; i++) {
        const sampled *k = &s->all[i];
        if (!selection_fits(k)) continue;
        kind_of_values *kind = &chosen->kinds[k->value_len >= CODEC_LONG];
        kind->all[kind->count++] = i;
        kind->sample_bytes += (double)looked_at(k);
        kind->store_bytes += k->weight * (double)looked_at(k);
        chosen->strings += k->weight;
    }
}

static double smaller(double a, double b) {
    return a < b ? a : b;
}

/* How much of a kind is learned from. */
static void divide(kind_of_values *kind, const sample *s, bool *learned) {
    double by_server = smaller(kind->store_bytes, CODEC_SAMPLE_VALUES);
    double most =
        smaller(by_server, s->whole ? kind->sample_bytes : LEARNED_MAX * kind->sample_bytes);
    double taken = 0;
    while (kind->learned < kind->count && taken < most) {
        size_t i = kind->all[kind->learned++];
        taken += (double)looked_at(&s->all[i]);
        learned[i] = true;
    }
    if (kind->count == 0 || taken == 0) return;
    kind->completeness = smaller(taken / by_server, 1);
    kind->known = 0.5 + (by_server / kind->store_bytes - 0.5) * kind->completeness;
    if (kind->learned == kind->count) kind->known = 1;
}

/* How many of a kind can be stored if so many of it are wanted of what is known and what is not. */
static double possible(double wanted, size_t there) {
    return wanted > 0 ? (double)there / wanted : INFINITY;
}

static void store(selection *chosen, const size_t *all, size_t count) {
    for (size_t i = 0; i < count; i++) chosen->stored[all[i]] = true;
    chosen->stored_count += count;
}

/* Of each kind, known and not, as many as keep the shares that they have in the store. */
static void mix(selection *chosen) {
    size_t all = chosen->kinds[0].count + chosen->kinds[1].count;
    double most = (double)all;
    for (int i = 0; i < KINDS_OF_VALUES; i++) {
        const kind_of_values *kind = &chosen->kinds[i];
        double share = (double)kind->count / (double)all;
        most = smaller(most, possible(share * kind->known, kind->learned));
        most = smaller(most, possible(share * (1 - kind->known), kind->count - kind->learned));
    }
    for (int i = 0; i < KINDS_OF_VALUES; i++) {
        const kind_of_values *kind = &chosen->kinds[i];
        double wanted = most * (double)kind->count / (double)all;
        size_t known = (size_t)(wanted * kind->known + 0.5);
        size_t others = (size_t)(wanted * (1 - kind->known) + 0.5);
        store(chosen, kind->all, known);
        store(chosen, kind->all + kind->learned, others);
    }
}

void selection_make(selection *chosen, const sample *s) {
    *chosen = (selection){0};
    chosen->learned = allocate(s->count + 1);
    chosen->stored = allocate(s->count + 1);
    for (int i = 0; i < KINDS_OF_VALUES; i++)
        chosen->kinds[i].all = allocate((s->count + 1) * sizeof(size_t));
    sort_out(chosen, s);
    for (int i = 0; i < KINDS_OF_VALUES; i++) divide(&chosen->kinds[i], s, chosen->learned);
    if (chosen->strings > 0) mix(chosen);
}

void selection_free(selection *chosen) {
    for (int i = 0; i < KINDS_OF_VALUES; i++) free(chosen->kinds[i].all);
    free(chosen->learned);
    free(chosen->stored);
}
