/*
 * phrase_class.c: which phrases are of one kind.
 *
 * The exchange algorithm (Kneser and Ney, "Improved clustering techniques for class-based
 * statistical language modelling", 1993): take each phrase out of its class and put it where the
 * classes of neighbours then say most about each other. With N(c, k) the times that a phrase of
 * class k follows one of class c, that is where
 *
 *      sum N(c, k) log N(c, k)  -  sum N(c) log N(c)  -  sum N(k) log N(k)
 *
 * is greatest. A record's start counts as one more class c. At first a phrase's class is given by
 * its last byte.
 */
#include "base/pace.h"
#include "phrase/phrase_learn.h"

#include <math.h>

#define ROUNDS_MAX   6
#define CLASSES_MAX  (PHRASE_CONTEXTS_MAX - 1)
#define XLOGX_TABLED 4096

typedef struct exchange {
    const lexicon *x;
    token_list tokens;
    uint32_t plain;    /* classes that a phrase may have; copies have the one after them */
    uint32_t classes;  /* all of them; as a context, this number is the start */
    uint32_t n;        /* phrases and copies */
    uint8_t *class_of; /* [n] */
    uint32_t *first;   /* [n + 2] a phrase's first place in `places` */
    uint32_t *places;  /* where in the tokens each phrase stands */
    float cell[CLASSES_MAX + 1][CLASSES_MAX], row[CLASSES_MAX + 1], column[CLASSES_MAX];
    float xlogx[XLOGX_TABLED];
} exchange;

/* One phrase's neighbours, by class; a neighbour that is the phrase itself is `self`. */
typedef struct neighbours {
    float before[CLASSES_MAX + 1], after[CLASSES_MAX];
    float all_before, all_after, self;
    uint8_t used_before[CLASSES_MAX + 1], used_after[CLASSES_MAX]; /* classes that are not 0 */
    uint32_t n_before, n_after;
} neighbours;

static inline float xlogx(const exchange *e, float n) {
    return n < XLOGX_TABLED ? e->xlogx[(uint32_t)n] : n * log2f(n);
}

/* What n more make of a count. */
static inline float growth(const exchange *e, float count, float n) {
    return xlogx(e, count + n) - xlogx(e, count);
}

static inline uint32_t context(const exchange *e, uint32_t token) {
    return token == LEXICON_START ? e->classes : e->class_of[token];
}

static void list_places(exchange *e) {
    memset(e->first, 0, (e->n + 2) * sizeof *e->first);
    for (size_t i = 0; i < e->tokens.n; i++)
        if (e->tokens.list[i] != LEXICON_START) e->first[e->tokens.list[i] + 2]++;
    for (uint32_t i = 2; i < e->n + 2; i++) e->first[i] += e->first[i - 1];
    for (size_t i = 0; i < e->tokens.n; i++)
        if (e->tokens.list[i] != LEXICON_START)
            e->places[e->first[e->tokens.list[i] + 1]++] = (uint32_t)i;
}

/* The commonest last bytes get a class each, all the others the last one. */
static void first_classes(exchange *e) {
    const lexicon *x = e->x;
    uint32_t uses[256] = {0};
    uint8_t of_byte[256];
    memset(of_byte, (int)e->plain - 1, sizeof of_byte);
    for (uint32_t i = 0; i < x->n; i++) uses[x->text[x->at[i] + x->len[i] - 1u]] += x->count[i];
    for (uint32_t class = 0; class < e->plain - 1; class ++) {
        uint32_t top = 0;
        for (uint32_t b = 1; b < 256; b++)
            if (uses[b] > uses[top]) top = b;
        of_byte[top] = (uint8_t) class;
        uses[top] = 0;
    }
    for (uint32_t i = 0; i < x->n; i++)
        e->class_of[i] = of_byte[x->text[x->at[i] + x->len[i] - 1u]];
    for (uint32_t i = x->n; i < e->n; i++) e->class_of[i] = (uint8_t)e->plain;
}

static void count_cells(exchange *e) {
    for (size_t i = 1; i < e->tokens.n; i++) {
        if (e->tokens.list[i] == LEXICON_START) continue;
        uint32_t from = context(e, e->tokens.list[i - 1]), to = e->class_of[e->tokens.list[i]];
        e->cell[from][to]++;
        e->row[from]++;
        e->column[to]++;
    }
}

static void look_around(const exchange *e, uint32_t phrase, neighbours *a) {
    memset(a, 0, sizeof *a);
    for (uint32_t i = e->first[phrase]; i < e->first[phrase + 1]; i++) {
        size_t at = e->places[i];
        uint32_t before = e->tokens.list[at - 1];
        uint32_t after = at + 1 < e->tokens.n ? e->tokens.list[at + 1] : LEXICON_START;
        a->all_before++;
        if (before == phrase)
            a->self++;
        else
            a->before[context(e, before)]++;
        if (after == LEXICON_START) continue;
        a->all_after++;
        if (after != phrase) a->after[e->class_of[after]]++;
    }
    for (uint32_t c = 0; c <= e->classes; c++)
        if (a->before[c] > 0) a->used_before[a->n_before++] = (uint8_t)c;
    for (uint32_t c = 0; c < e->classes; c++)
        if (a->after[c] > 0) a->used_after[a->n_after++] = (uint8_t)c;
}

/* Puts a phrase with these neighbours into a class (sign 1) or takes it out (-1). */
static void move(exchange *e, uint32_t class, const neighbours *a, float sign) {
    for (uint32_t i = 0; i < a->n_before; i++)
        e->cell[a->used_before[i]][class] += sign * a->before[a->used_before[i]];
    for (uint32_t i = 0; i < a->n_after; i++)
        e->cell[class][a->used_after[i]] += sign * a->after[a->used_after[i]];
    e->cell[class][class] += sign * a->self;
    e->row[class] += sign * a->all_after;
    e->column[class] += sign * a->all_before;
}

static float gain(const exchange *e, uint32_t class, const neighbours *a) {
    float sum = growth(e, e->cell[class][class], a->before[class] + a->after[class] + a->self);
    for (uint32_t i = 0; i < a->n_before; i++) {
        uint32_t c = a->used_before[i];
        if (c != class) sum += growth(e, e->cell[c][class], a->before[c]);
    }
    for (uint32_t i = 0; i < a->n_after; i++) {
        uint32_t c = a->used_after[i];
        if (c != class) sum += growth(e, e->cell[class][c], a->after[c]);
    }
    return sum - growth(e, e->row[class], a->all_after) -
           growth(e, e->column[class], a->all_before);
}

/* Returns how many phrases changed their class. */
static uint32_t exchange_round(exchange *e) {
    uint32_t moved = 0;
    for (uint32_t phrase = 0; phrase < e->x->n; phrase++) {
        pace_keep();
        if (e->first[phrase] == e->first[phrase + 1]) continue;
        neighbours a;
        uint32_t old = e->class_of[phrase], best = old;
        look_around(e, phrase, &a);
        move(e, old, &a, -1);
        float best_gain = gain(e, old, &a);
        for (uint32_t class = 0; class < e->plain; class ++) {
            float g = class == old ? best_gain : gain(e, class, &a);
            if (g > best_gain) {
                best_gain = g;
                best = class;
            }
        }
        move(e, best, &a, 1);
        e->class_of[phrase] = (uint8_t)best;
        moved += best != old;
    }
    return moved;
}

bool phrase_classify(const lexicon *x, token_list tokens, uint32_t classes, uint8_t *class_of) {
    exchange *e = x->mem->alloc(sizeof *e);
    uint32_t n = x->n + lexicon_copies(x);
    uint32_t *places = x->mem->alloc((tokens.n + n + 2) * sizeof *places);
    if (e && places) {
        memset(e, 0, sizeof *e);
        e->x = x;
        e->tokens = tokens;
        e->plain = classes;
        e->classes = classes + x->copies;
        e->n = n;
        e->class_of = class_of;
        e->first = places + tokens.n;
        e->places = places;
        for (uint32_t i = 1; i < XLOGX_TABLED; i++) e->xlogx[i] = (float)i * log2f((float)i);
        list_places(e);
        first_classes(e);
        count_cells(e);
        for (int round = 0; round < ROUNDS_MAX; round++)
            if (exchange_round(e) < x->n / 64) break;
    }
    if (places) x->mem->free(places);
    if (e) x->mem->free(e);
    return e && places;
}
