/*
 * phrase_train.c: which phrases, and how frequent they are.
 */
#include "phrase_train.h"
#include <stdlib.h>
#include <math.h>

#define SAMPLE_MAX     (16u << 20)
#define CANDIDATES_MAX (1u << 18)
#define SLOTS          (3u << 18)



static uint32_t add(trainer *t, const uint8_t *a, unsigned len_a, const uint8_t *b, unsigned len_b) {
    unsigned len = len_a + len_b;
    if (t->n == CANDIDATES_MAX || t->text_len + len > PHRASE_TEXT_MAX ||
        t->slots_used > SLOTS / 3 * 2)
        return NONE;
    memcpy(t->text + t->text_len, a, len_a);
    if (len_b) memcpy(t->text + t->text_len + len_a, b, len_b);
    t->at[t->n] = t->text_len;
    t->len[t->n] = (uint8_t)len;
    t->count[t->n] = 0;
    if (len == 1) t->match.single[a[0]] = t->n;
    else t->slots_used += phrase_match_add(&t->match, t->text_len, len, t->n);
    t->text_len += len;
    return t->n++;
}

static void clear_matcher(trainer *t) {
    memset(t->match.slots, 0, SLOTS * sizeof *t->match.slots);
    memset(t->match.filter, 0, 1u << 19);
    t->slots_used = 0;
}

static uint32_t note_pair(trainer *t, uint32_t a, uint32_t b) {
    uint64_t key = (uint64_t)a << 20 | b;
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(hash >> 32) & (t->npairs - 1);
    while (t->pairs[i] != 0 && t->pairs[i] >> 24 != key) i = (i + 1) & (t->npairs - 1);
    if (t->pairs[i] == 0) {
        if (t->pairs_used > t->npairs / 4 * 3) return 0;
        t->pairs_used++;
        t->pairs[i] = key << 24;
    }
    return (uint32_t)(++t->pairs[i] & 0xffffff);
}

/* tail-safe match */
static unsigned match_at(const trainer *t, const uint8_t *p, size_t left, uint32_t *id) {
    if (left >= 8) return phrase_match(&t->match, p, left, id);
    uint8_t last[8] = {0};
    memcpy(last, p, left);
    return phrase_match(&t->match, last, left, id);
}

static void grow(trainer *t, uint32_t threshold) {
    memset(t->pairs, 0, t->npairs * sizeof *t->pairs);
    t->pairs_used = 0;
    for (uint32_t i = 0; i < t->nsamples; i++) {
        const phrase_sample *s = &t->samples[t->order[i]];
        const uint8_t *p = s->data;
        uint32_t before = NONE, id;
        for (size_t left = s->len; left > 0;) {
            unsigned len = match_at(t, p, left, &id);
            if (before != NONE && t->len[before] + len <= PHRASE_LEN_MAX &&
                note_pair(t, before, id) == threshold) {
                uint32_t merged = add(t, t->text + t->at[before], t->len[before],
                                      t->text + t->at[id], t->len[id]);
                if (merged != NONE) id = merged;
            }
            before = id;
            p += len;
            left -= len;
        }
    }
}

static void parse(trainer *t) {
    memset(t->count, 0, t->n * sizeof *t->count);
    t->ntokens = 0;
    for (uint32_t i = 0; i < t->nsamples; i++) {
        const phrase_sample *s = &t->samples[t->order[i]];
        const uint8_t *p = s->data;
        uint32_t id;
        if (t->tokens) t->tokens[t->ntokens++] = NONE;
        for (size_t left = s->len; left > 0;) {
            unsigned len = match_at(t, p, left, &id);
            t->count[id]++;
            if (t->tokens) t->tokens[t->ntokens] = id;
            t->ntokens++;
            p += len;
            left -= len;
        }
    }
}


static double envd(const char *n, double d);
static void gains(trainer *t, uint32_t *u) {
    double tot = 0, bonus = envd("BONUS", 1), T = envd("T", 20);
    for (uint32_t i = 0; i < t->n; i++) tot += t->count[i];
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->len[i] == 1) continue;
        double parts = 0;
        unsigned at = 0, len = t->len[i];
        const uint8_t *p = t->text + t->at[i];
        while (at < len) {
            uint32_t id;
            at += match_at(t, p + at, at == 0 ? len - 1 : len - at, &id);
            parts += log2f((float)(tot / (t->count[id] + t->count[i]))) + bonus;
        }
        double g = t->count[i] * (parts - bonus - log2f((float)(tot / (t->count[i] + 0.1))));
        u[i] = g < 0 ? 0 : (uint32_t)(g / T * 2 );
    }
}

/* keeps the `most` most used phrases, with at least `least` uses by u */
static void prune2(trainer *t, uint32_t *u, uint32_t least, uint32_t most) {
    uint32_t hist[1025] = {0}, cut = 1024, sum = 256;
    for (uint32_t i = 0; i < t->n; i++) if (t->len[i] > 1) hist[u[i] < 1024 ? u[i] : 1024]++;
    for (; cut >= least; cut--) { if (sum + hist[cut] > most) break; sum += hist[cut]; }
    uint32_t extra = cut >= least ? most - sum : 0; /* of those with exactly cut uses */
    uint32_t kept = 0;
    clear_matcher(t);
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->len[i] > 1 && (u[i] < cut || (u[i] == cut && (extra == 0 || extra-- == 0)))) { if (u[i] == cut && extra == UINT32_MAX) extra = 0; continue; }
        t->at[kept] = t->at[i];
        t->len[kept] = t->len[i];
        t->count[kept] = t->count[i];
        if (t->len[i] == 1) t->match.single[t->text[t->at[i]]] = kept;
        else t->slots_used += phrase_match_add(&t->match, t->at[i], t->len[i], kept);
        kept++;
    }
    t->n = kept;
}

/* keeps phrases with at least `least` uses; renumbers */
static void prune(trainer *t, uint32_t least) {
    uint32_t kept = 0;
    clear_matcher(t);
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->len[i] > 1 && t->count[i] < least) continue;
        t->at[kept] = t->at[i];
        t->len[kept] = t->len[i];
        t->count[kept] = t->count[i];
        if (t->len[i] == 1) t->match.single[t->text[t->at[i]]] = kept;
        else t->slots_used += phrase_match_add(&t->match, t->at[i], t->len[i], kept);
        kept++;
    }
    t->n = kept;
}


static double envd(const char *n, double d) { return getenv(n) ? atof(getenv(n)) : d; }

static phrase_dict *finish(trainer *t) {
    uint32_t n = t->n;
    const mem *m = t->m;
    uint32_t k = (uint32_t)envd("K", 8);
    uint8_t *class = m->alloc(n);
    t->tokens = m->alloc((t->ntokens + t->nsamples + 1) * 4);
    parse(t);
    phrase_classify(t, k, class);
    /* level: by class total, half-log steps */
    double steps = envd("STEPS", 1);
    uint32_t singles = (uint32_t)envd("SINGLES", 0);
    uint32_t *rank = m->alloc(n * sizeof *rank);
    uint32_t *key = m->alloc(n * sizeof *key);
    for (uint32_t i = 0; i < n; i++) {
        rank[i] = i;
        uint32_t level = (uint32_t)(steps * log2((double)(t->count[i] + 0.7) * 1.4));
        key[i] = (uint32_t)class[i] << 27 | (255 - level) << 19;
    }
    /* the most frequent get own groups */
    uint32_t *cs = m->alloc(n * 4);
    for (uint32_t s = 0; s < singles && s < n; s++) {
        uint32_t best = 0, bc = 0;
        for (uint32_t i = 0; i < n; i++) if (t->count[i] > bc && !(key[i] & 1)) bc = t->count[i], best = i;
        if (bc) key[best] = (uint32_t)class[best] << 27 | s << 1 | 1;
    }
    m->free(cs);
    for (uint32_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (uint32_t i = gap; i < n; i++) {
            uint32_t x = rank[i], j = i;
            for (; j >= gap && (key[rank[j - gap]] > key[x] || (key[rank[j-gap]] == key[x] && t->count[rank[j - gap]] < t->count[x])); j -= gap) rank[j] = rank[j - gap];
            rank[j] = x;
        }
    const uint8_t **text = m->alloc(n * sizeof *text);
    uint8_t *len = m->alloc(n), *lens = m->alloc(n);
    uint64_t *w = m->alloc(n * sizeof *w);
    uint16_t *group = m->alloc(n * 2);
    static uint32_t size[256], shorter[256 * 33];
    static uint8_t class_of[256], code_len[256 * 33];
    uint32_t groups = 0;
    for (uint32_t i = 0; i < n; i++) {
        text[i] = t->text + t->at[rank[i]];
        len[i] = t->len[rank[i]];
        if (i == 0 || key[rank[i]] != key[rank[i - 1]]) {
            if (groups < 256) {
            size[groups] = 0;
            class_of[groups] = class[rank[i]];
            groups++; } else printf("GROUPS!\n");
        }
        group[rank[i]] = (uint16_t)(groups - 1);
        size[groups - 1]++;
    }
    static double N[33][256], tot[33], all[256], call[32];
    memset(N, 0, sizeof N), memset(tot, 0, sizeof tot), memset(all, 0, sizeof all), memset(call, 0, sizeof call);
    double sum = 0;
    static double NC[33][32];
    memset(NC, 0, sizeof NC);
    for (size_t i = 1; i < t->ntokens; i++) if (t->tokens[i] != NONE) {
        uint32_t c = t->tokens[i - 1] == NONE ? k : class[t->tokens[i - 1]];
        uint32_t g = group[t->tokens[i]];
        N[c][g]++, tot[c]++, all[g]++, sum++, call[class_of[g]]++, NC[c][class_of[g]]++;
    }
    double smooth = envd("SMOOTH", 30);
    double bits = 0, ideal = 0;
    for (uint32_t c = 0; c <= k; c++) {
        double want[256];
        uint32_t order[256];
        for (uint32_t g = 0; g < groups; g++) {
            /* class-backed-off */
            double pk = (NC[c][class_of[g]] + 4 * (call[class_of[g]] + 1) / (sum + k)) / (tot[c] + 4);
            double back = pk * (all[g] + 0.5 * size[g]) / (call[class_of[g]] + 1);
            want[g] = (N[c][g] + smooth * back) / (tot[c] + smooth) / size[g];
            order[g] = g;
        }
        for (uint32_t i = 1; i < groups; i++) { uint32_t x = order[i], j = i; for (; j > 0 && want[order[j - 1]] > want[x]; j--) order[j] = order[j - 1]; order[j] = x; }
        uint32_t at = 0;
        for (uint32_t i = 0; i < groups; i++) for (uint32_t q = 0; q < size[order[i]]; q++) w[at++] = (uint64_t)(want[order[i]] * 1e12) + 1;
        huffman_lengths(m, w, n, 24, 7, lens);
        at = 0;
        for (uint32_t i = 0; i < groups; i++) {
            uint32_t g = order[i], sz = size[g];
            uint8_t lo = lens[at + sz - 1];
            uint32_t cnt = 0;
            for (uint32_t q = 0; q < sz; q++) { cnt += lens[at + q] == lo; if (lens[at+q] > lo+1) printf("BAD\n"); }
            code_len[c * groups + g] = lo;
            shorter[c * groups + g] = cnt;
            bits += N[c][g] * (lo + (double)(sz - cnt) / sz);
            if (N[c][g]) ideal += N[c][g] * -log2(want[g]);
            at += sz;
        }
    }
    if (getenv("VERBOSE")) printf("groups %u tokens %.0f bits/token %.3f ideal %.3f\n", groups, sum, bits / sum, ideal / sum);
    phrase_plan plan = {.n = n, .groups = groups, .contexts = k + 1, .ratio = 500000, .text = text, .len = len,
        .group_size = size, .class_of = class_of, .code_len = code_len, .shorter = shorter};
    phrase_dict *d = phrase_build(m, &plan);
    m->free(rank), m->free(text), m->free(len), m->free(lens), m->free(w);
    m->free(class), m->free(key), m->free(group), m->free(t->tokens);
    return d;
}

phrase_dict *phrase_train(const mem *m, const phrase_sample *samples, size_t n, size_t max_bytes) {
    trainer t = {.m = m, .samples = samples, .nsamples = (uint32_t)n};
    size_t bytes = 0;
    (void)max_bytes;
    t.order = m->alloc(n * 4 + 4);
    for (uint32_t i = 0; i < n; i++) t.order[i] = i, bytes += samples[i].len;
    uint64_t seed = 1;
    for (uint32_t i = (uint32_t)n; i > 1; i--) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t j = (uint32_t)((seed >> 33) % i), x = t.order[i - 1];
        t.order[i - 1] = t.order[j];
        t.order[j] = x;
    }
    t.text = m->alloc(PHRASE_TEXT_MAX + PHRASE_TEXT_PAD);
    t.at = m->alloc(CANDIDATES_MAX * 4);
    t.count = m->alloc(CANDIDATES_MAX * 4);
    t.len = m->alloc(CANDIDATES_MAX);
    t.npairs = 1u << 22;
    t.pairs = m->alloc(t.npairs * 8);
    t.match.slots = m->alloc(SLOTS * 8);
    t.match.nslots = SLOTS;
    t.match.filter = m->alloc(1u << 19);
    t.match.filter_shift = 45;
    t.match.text = t.text;
    clear_matcher(&t);
    for (unsigned b = 0; b < 256; b++) { uint8_t c = (uint8_t)b; add(&t, &c, 1, NULL, 0); }
    for (int r = 0; r < (int)envd("ROUNDS", 1); r++) {
        grow(&t, (uint32_t)envd(r ? "TH2" : "TH", 2));
        parse(&t);
        if (getenv("VERBOSE")) printf("round %d grown %u tokens %zu text %u\n", r, t.n, t.ntokens, t.text_len);
        prune(&t, (uint32_t)envd("LEAST", 2));
        parse(&t);
        if (getenv("VERBOSE")) printf("   pruned %u tokens %zu\n", t.n, t.ntokens);
    }
    uint32_t lim = (uint32_t)envd("NMAX", 65536);
    uint32_t *opt = m->alloc(CANDIDATES_MAX * 4);
    for (int r = 0; r < (int)envd("OPT", 0); r++) {
        gains(&t, opt);
        prune2(&t, opt, 2, r + 1 == (int)envd("OPT", 0) ? lim : lim * 3 / 2);
        parse(&t);
        if (getenv("VERBOSE")) printf("   opt pruned %u tokens %zu\n", t.n, t.ntokens);
    }
    if (t.n > lim) { prune2(&t, t.count, 2, lim); parse(&t); }
        if (getenv("VERBOSE")) printf("   final %u tokens %zu\n", t.n, t.ntokens);
    m->free(opt);
    phrase_dict *d = finish(&t);
    m->free(t.order), m->free(t.text), m->free(t.at), m->free(t.count), m->free(t.len), m->free(t.pairs), m->free(t.match.slots), m->free(t.match.filter);
    return d;
}
