/*
 * phrase_lexicon.c: growing phrases (OnPair, arXiv 2508.02280) and weeding them out.
 *
 * Growing alone keeps what was frequent. Whether a phrase is worth its place is another question:
 * random digits make every pair of digits frequent, and none of them saves anything over its two
 * digits. So each phrase is priced against the best that could be written without it, as in the
 * pruning of unigram language models (Kudo, arXiv 1804.10959).
 */
#include "phrase/phrase_lexicon.h"
#include "base/pace.h"

#include <math.h>

#define CANDIDATES_MIN 4096u
#define CANDIDATES_MAX (1u << 18)
#define PAIRS_MAX      (1u << 22)
/* What a phrase must save in the sample to be kept, bits; and what one code less is worth in
 * speed and in what codes lose by being whole bits. */
#define WORTH_KEEPING  20.0f
#define WORTH_OF_TOKEN 1.0f

static uint32_t power_of_two(size_t at_least) {
    uint32_t n = 1;
    while (n < at_least) n *= 2;
    return n;
}

static uint32_t clamp(size_t value, uint32_t min, uint32_t max) {
    return value < min ? min : value > max ? max : (uint32_t)value;
}

static unsigned filter_bits(const lexicon *x) {
    return 1u + (unsigned)__builtin_ctz(power_of_two(x->max));
}

static void empty_matcher(lexicon *x) {
    memset(x->match.cells, 0, x->match.cell_count * sizeof *x->match.cells);
    memset(x->match.filter, 0, (size_t)1 << filter_bits(x));
    x->cells_used = 0;
}

/* Makes the phrase of number i, whose text is there, known to the matcher. */
static void make_known(lexicon *x, uint32_t i) {
    if (x->len[i] == 1)
        x->match.single[x->text[x->at[i]]] = i;
    else
        x->cells_used += phrase_match_add(&x->match, x->at[i], x->len[i], i);
}

/* Adds the phrase `a` followed by `b`, if there is room: returns its number, else b's. */
static uint32_t join(lexicon *x, uint32_t a, uint32_t b) {
    uint32_t len = x->len[a] + x->len[b], i = x->n;
    if (x->n == x->max || x->text_len + len > x->text_max) return b;
    if (x->cells_used + MATCH_TIERS > x->match.cell_count / 3 * 2) return b;
    x->at[i] = x->text_len;
    x->len[i] = (uint8_t)len;
    memcpy(x->text + x->text_len, x->text + x->at[a], x->len[a]);
    memcpy(x->text + x->text_len + x->len[a], x->text + x->at[b], x->len[b]);
    x->text_len += len;
    x->n++;
    make_known(x, i);
    return i;
}

bool lexicon_init(lexicon *x, const mem *m, size_t sample_bytes) {
    *x = (lexicon){.mem = m, .max = clamp(sample_bytes / 8, CANDIDATES_MIN, CANDIDATES_MAX)};
    x->text_max = 16 * x->max;
    x->match.cell_count = 3 * x->max;
    x->match.filter_shift = 64 - filter_bits(x);
    x->text = m->alloc(x->text_max + PHRASE_TEXT_PAD);
    x->at = m->alloc(x->max * sizeof *x->at);
    x->count = m->alloc(x->max * sizeof *x->count);
    x->len = m->alloc(x->max);
    x->match.cells = m->alloc(x->match.cell_count * sizeof *x->match.cells);
    x->match.filter = m->alloc((size_t)1 << filter_bits(x));
    x->match.text = x->text;
    if (!x->text || !x->at || !x->count || !x->len || !x->match.cells || !x->match.filter)
        return false;
    memset(x->text, 0, x->text_max + PHRASE_TEXT_PAD);
    empty_matcher(x);
    for (x->n = 0; x->n < 256; x->n++) {
        x->text[x->n] = (uint8_t)x->n;
        x->at[x->n] = x->n;
        x->len[x->n] = 1;
        make_known(x, x->n);
    }
    x->text_len = 256;
    return true;
}

void lexicon_free(lexicon *x) {
    void *blocks[] = {x->text, x->at, x->count, x->len, x->match.cells, x->match.filter};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i]) x->mem->free(blocks[i]);
}

/* ---- growing --------------------------------------------------------------------------------- */

/* Pairs of phrases and how often they were seen: [first:20][second:20][count:24]. */
typedef struct pairs {
    uint64_t *cells;
    uint32_t n, used;
} pairs;

/* Counts a pair and returns its count. Pairs that come when the table is full are not counted. */
static uint32_t count_pair(pairs *t, uint32_t a, uint32_t b) {
    uint64_t key = (uint64_t)a << 20 | b;
    uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (t->n - 1);
    while (t->cells[i] != 0 && t->cells[i] >> 24 != key) i = (i + 1) & (t->n - 1);
    if (t->cells[i] == 0) {
        if (t->used == t->n / 4 * 3) return 0;
        t->used++;
        t->cells[i] = key << 24;
    }
    return (uint32_t)(++t->cells[i] & 0xffffff);
}

static unsigned match(const lexicon *x, const uint8_t *p, size_t left, uint32_t *phrase) {
    uint8_t last[8] = {0};
    if (left < 8) p = memcpy(last, p, left);
    return phrase_match(&x->match, p, left, phrase);
}

bool lexicon_grow(lexicon *x, const sample_set *set, uint32_t often) {
    pairs t = {.n = clamp(power_of_two(set->bytes / 3), CANDIDATES_MIN, PAIRS_MAX)};
    t.cells = x->mem->alloc(t.n * sizeof *t.cells);
    if (!t.cells) return false;
    memset(t.cells, 0, t.n * sizeof *t.cells);
    for (uint32_t i = 0; i < set->n; i++) {
        pace_keep();
        const uint8_t *p = set->list[i].data;
        uint32_t before = LEXICON_START, phrase;
        for (size_t left = set->list[i].len; left > 0;) {
            unsigned len = match(x, p, left, &phrase);
            if (before != LEXICON_START && x->len[before] + len <= PHRASE_LEN_MAX &&
                count_pair(&t, before, phrase) == often)
                phrase = join(x, before, phrase);
            before = phrase;
            p += len;
            left -= len;
        }
    }
    x->mem->free(t.cells);
    return true;
}

size_t lexicon_parse(lexicon *x, const sample_set *set, uint32_t *tokens, size_t max) {
    size_t n = 0;
    memset(x->count, 0, x->n * sizeof *x->count);
    for (uint32_t i = 0; i < set->n; i++) {
        pace_keep();
        const uint8_t *p = set->list[i].data;
        uint32_t phrase;
        if (n++ < max) tokens[n - 1] = LEXICON_START;
        for (size_t left = set->list[i].len; left > 0;) {
            unsigned len = match(x, p, left, &phrase);
            x->count[phrase]++;
            if (n++ < max) tokens[n - 1] = phrase;
            p += len;
            left -= len;
        }
    }
    return n;
}

/* ---- weeding out ----------------------------------------------------------------------------- */

/* Bits that a phrase saves in the sample, against writing its bytes with other phrases. */
static float saves(const lexicon *x, uint32_t i, float tokens) {
    const uint8_t *p = x->text + x->at[i];
    float without = -WORTH_OF_TOKEN, uses = (float)x->count[i];
    if (uses == 0) return 0;
    for (unsigned at = 0; at < x->len[i];) {
        uint32_t part;
        at += match(x, p + at, at == 0 ? x->len[i] - 1u : x->len[i] - at, &part);
        without += log2f(tokens / ((float)x->count[part] + uses)) + WORTH_OF_TOKEN;
    }
    return uses * (without - log2f(tokens / uses));
}

/* The value that all but `most` of the values are not above. */
static float limit_of(const float *value, uint32_t n, uint32_t most) {
    float low = 0, high = 1e12f;
    for (int i = 0; i < 60; i++) {
        float middle = sqrtf((low + 1) * (high + 1)) - 1;
        uint32_t above = 0;
        for (uint32_t j = 0; j < n; j++) above += value[j] > middle;
        if (above > most)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void renumber(lexicon *x, uint32_t i, uint32_t to) {
    x->at[to] = x->at[i];
    x->len[to] = x->len[i];
    x->count[to] = x->count[i];
    make_known(x, to);
}

bool lexicon_keep(lexicon *x, uint32_t most) {
    float *value = x->mem->alloc(x->n * sizeof *value), tokens = 0;
    if (!value) return false;
    for (uint32_t i = 0; i < x->n; i++) tokens += (float)x->count[i];
    for (uint32_t i = 0; i < x->n; i++) value[i] = i < 256 ? 0 : saves(x, i, tokens);
    float limit = limit_of(value, x->n, most < 256 ? 0 : most - 256);
    if (limit < WORTH_KEEPING) limit = WORTH_KEEPING;
    uint32_t kept = 0;
    empty_matcher(x);
    for (uint32_t i = 0; i < x->n; i++)
        if (i < 256 || value[i] > limit) renumber(x, i, kept++);
    x->n = kept;
    x->mem->free(value);
    return true;
}
