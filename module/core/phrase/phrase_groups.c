/*
 * phrase_groups.c: from classes to codes.
 *
 * Phrases are ranked by class and by how often they are used. Where the class changes, or the use
 * falls below the next step of a logarithmic scale, a group ends. What a context knows of a phrase
 * is its group: how often the group was seen there, divided among its phrases.
 */
#include "base/pace.h"
#include "base/sort.h"
#include "phrase/huffman.h"
#include "phrase/phrase_learn.h"

#include <math.h>

/* So many sightings of what is known without the context are added to those in it. */
#define PRIOR_OF_CLASS 4.0
#define PRIOR_OF_GROUP 30.0
#define WEIGHT_ONE     1e13 /* the weight of probability 1 */

typedef struct grouping {
    const lexicon *x;
    const uint8_t *class_of; /* by number of phrase */
    uint32_t classes, groups;
    uint32_t n;           /* phrases and copies */
    uint32_t *ranked;     /* [n] by rank: number of the phrase */
    uint16_t *group_of;   /* by number of phrase */
    const uint8_t **text; /* [n] by rank */
    uint8_t *len, *symbol_len;
    uint64_t *weight;
    uint32_t group_size[PHRASE_GROUPS_MAX];
    uint8_t group_class[PHRASE_GROUPS_MAX];
    uint8_t code_len[PHRASE_CONTEXTS_MAX * PHRASE_GROUPS_MAX];
    uint32_t shorter[PHRASE_CONTEXTS_MAX * PHRASE_GROUPS_MAX];
    double seen[PHRASE_CONTEXTS_MAX][PHRASE_GROUPS_MAX];
    double seen_class[PHRASE_CONTEXTS_MAX][PHRASE_CONTEXTS_MAX];
    double seen_context[PHRASE_CONTEXTS_MAX];
    double all_group[PHRASE_GROUPS_MAX], all_class[PHRASE_CONTEXTS_MAX], all;
} grouping;

/* Class by class, frequent phrases first. */
static bool ranks_before(const void *context, uint32_t a, uint32_t b) {
    const grouping *g = context;
    const uint32_t *count = g->x->count;
    if (g->class_of[a] != g->class_of[b]) return g->class_of[a] < g->class_of[b];
    return count[a] != count[b] ? count[a] > count[b] : a < b;
}

static void rank_phrases(grouping *g) {
    const lexicon *x = g->x;
    for (uint32_t i = 0; i < x->n; i++) g->ranked[i] = i;
    sort_by(g->ranked, x->n, ranks_before, g);
    for (uint32_t i = 0; i < x->n; i++) {
        g->text[i] = x->text + x->at[g->ranked[i]];
        g->len[i] = x->len[g->ranked[i]];
    }
    for (uint32_t i = x->n; i < g->n; i++) g->ranked[i] = i;
}

/* Returns how many groups there are if the scale has so many steps for each doubling. */
static uint32_t count_groups(grouping *g, float steps) {
    uint32_t groups = 0, class_before = 0;
    int level_before = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t phrase = g->ranked[i], class = g->class_of[phrase];
        int level = (int)(steps * log2f((float)g->x->count[phrase] * 1.4f + 1));
        bool copy = i >= g->x->n;
        if (i == 0 || copy || class != class_before || level != level_before) {
            if (groups == PHRASE_GROUPS_MAX) return groups + 1;
            g->group_class[groups] = (uint8_t) class;
            g->group_size[groups++] = 0;
        }
        g->group_size[groups - 1]++;
        g->group_of[phrase] = (uint16_t)(groups - 1);
        class_before = class;
        level_before = level;
    }
    return groups;
}

static void count_sightings(grouping *g, token_list tokens) {
    for (size_t i = 1; i < tokens.n; i++) {
        if (tokens.list[i] == LEXICON_START) continue;
        uint32_t before = tokens.list[i - 1], group = g->group_of[tokens.list[i]];
        uint32_t context = before == LEXICON_START ? g->classes : g->class_of[before];
        uint32_t class = g->group_class[group];
        g->seen[context][group]++;
        g->seen_class[context][class]++;
        g->seen_context[context]++;
        g->all_group[group]++;
        g->all_class[class]++;
        g->all++;
    }
}

/* Probability of each phrase of a group in a context. */
static double probability(const grouping *g, uint32_t context, uint32_t group) {
    uint32_t class = g->group_class[group];
    double of_class = (g->all_class[class] + 1) / (g->all + g->classes);
    of_class = (g->seen_class[context][class] + PRIOR_OF_CLASS * of_class) /
               (g->seen_context[context] + PRIOR_OF_CLASS);
    double of_group =
        (g->all_group[group] + 0.5 * g->group_size[group]) / (g->all_class[class] + 1);
    return (g->seen[context][group] + PRIOR_OF_GROUP * of_class * of_group) /
           (g->seen_context[context] + PRIOR_OF_GROUP) / g->group_size[group];
}

static bool rarer(const void *context, uint32_t a, uint32_t b) {
    const double *p = context;
    return p[a] != p[b] ? p[a] < p[b] : a < b;
}

/* Gives a context its code lengths. False: out of memory. */
static bool code_context(grouping *g, uint32_t context) {
    double p[PHRASE_GROUPS_MAX];
    uint32_t order[PHRASE_GROUPS_MAX], at = 0; /* groups, rare phrases first */
    for (uint32_t i = 0; i < g->groups; i++) {
        p[i] = probability(g, context, i);
        order[i] = i;
    }
    sort_by(order, g->groups, rarer, p);
    for (uint32_t i = 0; i < g->groups; i++)
        for (uint32_t j = 0; j < g->group_size[order[i]]; j++)
            g->weight[at++] = (uint64_t)(p[order[i]] * WEIGHT_ONE) + 1;
    if (!huffman_lengths(g->x->mem, g->weight, g->n, PHRASE_CODE_MAX, PHRASE_END_BITS,
                         g->symbol_len))
        return false;
    at = 0;
    for (uint32_t i = 0; i < g->groups; i++) {
        uint32_t size = g->group_size[order[i]], of = context * g->groups + order[i];
        const uint8_t *lens = g->symbol_len + at;
        g->code_len[of] = lens[size - 1]; /* lengths of equal weights differ by 1 at most */
        g->shorter[of] = 0;
        for (uint32_t j = 0; j < size; j++) g->shorter[of] += lens[j] == lens[size - 1];
        at += size;
    }
    return true;
}

static phrase_dict *code_groups(grouping *g, token_list tokens, uint32_t groups_max) {
    float steps = 2;
    rank_phrases(g);
    while ((g->groups = count_groups(g, steps)) > groups_max && steps > 0.01f) steps *= 0.8f;
    count_sightings(g, tokens);
    for (uint32_t context = 0; context <= g->classes; context++) {
        pace_keep();
        if (!code_context(g, context)) return NULL;
    }
    phrase_plan plan = {.n = g->n,
                        .groups = g->groups,
                        .contexts = g->classes + 1,
                        .copies = lexicon_copies(g->x),
                        .text = g->text,
                        .len = g->len,
                        .group_size = g->group_size,
                        .class_of = g->group_class,
                        .code_len = g->code_len,
                        .shorter = g->shorter};
    return phrase_build(g->x->mem, &plan);
}

phrase_dict *phrase_code_groups(const lexicon *x, token_list tokens, uint32_t classes,
                                const uint8_t *class_of, uint32_t groups_max) {
    phrase_dict *d = NULL;
    size_t each = sizeof(uint64_t) + sizeof(uint8_t *) + sizeof(uint32_t) + sizeof(uint16_t) + 2;
    grouping *g = x->mem->alloc(sizeof *g);
    uint32_t n = x->n + lexicon_copies(x);
    uint8_t *block = x->mem->alloc(n * each);
    if (g && block) {
        memset(g, 0, sizeof *g);
        g->x = x;
        g->class_of = class_of;
        g->classes = classes + x->copies;
        g->n = n;
        g->weight = (uint64_t *)(void *)block;
        g->text = (const uint8_t **)(void *)(g->weight + n);
        g->ranked = (uint32_t *)(void *)(g->text + n);
        g->group_of = (uint16_t *)(void *)(g->ranked + n);
        g->len = (uint8_t *)(g->group_of + n);
        g->symbol_len = g->len + n;
        d = code_groups(g, tokens, groups_max);
    }
    if (block) x->mem->free(block);
    if (g) x->mem->free(g);
    return d;
}
