/* selection.c: see selection.h. */
#include "selection.h"

#include "codec/codec_train.h"
#include "common/common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a sample that is not the whole store so much is learned from at most. */
#define LEARNED_MAX 0.75

/* Keys under this prefix are never served, whatever ckv.prefixes is. */
#define OWN_PREFIX "ckv:"

static bool begins(const char *text, size_t len, const char *with) {
    return len >= strlen(with) && !memcmp(text, with, strlen(with));
}

/* PFADD and PFCOUNT work on a string, which would leave ckv with each of them. */
static bool is_hyperloglog(const sampled *k) {
    return k->value_len >= 16 && begins(k->value, k->fetched, "HYLL");
}

bool selection_may(const sampled *k) {
    return k->value && k->value_len <= CODEC_ZSTD_MAX && !is_hyperloglog(k) &&
           !begins(k->key, k->key_len, OWN_PREFIX);
}

bool selection_fits(const sampled *k) {
    return selection_may(k) && k->value_len <= CODEC_PHRASE_MAX && k->fetched == k->value_len;
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

/* ---- what is learned from -------------------------------------------------------------------- */

/* Marks a part of the values, about so many bytes, evenly over the sample. It is in no order, so
 * that of equal values, too, chance decides how many are learned from, as it does in a server:
 * where each is there a few times, some are not learned at all. */
static double mark_learned(const kind_of_values *kind, const sample *s, double bytes,
                           bool *learned) {
    double taken = 0, marked = 0, part = bytes / kind->sample_bytes;
    for (size_t i = 0; i < kind->count; i++) {
        if (marked >= part * (double)(i + 1)) continue;
        learned[kind->all[i]] = true;
        marked++;
        taken += (double)looked_at(&s->all[kind->all[i]]);
    }
    return taken;
}

/* What was learned from comes first, both parts as the sample has them. */
static void put_learned_first(kind_of_values *kind, const bool *learned) {
    size_t *others = allocate((kind->count + 1) * sizeof *others), left = 0;
    for (size_t i = 0; i < kind->count; i++)
        if (learned[kind->all[i]])
            kind->all[kind->learned++] = kind->all[i];
        else
            others[left++] = kind->all[i];
    memcpy(kind->all + kind->learned, others, left * sizeof *others);
    free(others);
}

/* Chooses what of a kind is learned from. */
static void divide(kind_of_values *kind, const sample *s, bool *learned) {
    if (kind->sample_bytes == 0) return;
    double by_server = smaller(kind->store_bytes, CODEC_SAMPLE_VALUES);
    double most = (s->whole ? 1 : LEARNED_MAX) * kind->sample_bytes;
    double taken = mark_learned(kind, s, smaller(by_server, most), learned);
    put_learned_first(kind, learned);
    kind->completeness = smaller(taken / by_server, 1);
    kind->known = 0.5 + (by_server / kind->store_bytes - 0.5) * kind->completeness;
    if (kind->learned == kind->count) kind->known = 1;
}

/* ---- what is stored -------------------------------------------------------------------------- */

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
