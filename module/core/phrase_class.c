/* phrase_class.c */
#include "phrase_train.h"
#include <math.h>
#include <stdlib.h>

typedef struct classes {
    uint32_t k;
    double cell[33][32], row[33], col[32];
    float f[4096];
} classes;

static inline double xlogx(const classes *c, double x) {
    return x < 4096 ? c->f[(int)x] : x * (double)log2f((float)x);
}

bool phrase_classify(trainer *t, uint32_t k, uint8_t *class) {
    const mem *m = t->m;
    uint32_t n = t->n;
    classes *c = m->alloc(sizeof *c);
    uint32_t *start = m->alloc((n + 2) * 4), *occ = m->alloc(t->ntokens * 4 + 4);
    memset(c, 0, sizeof *c);
    c->k = k;
    for (int i = 1; i < 4096; i++) c->f[i] = (float)i * log2f((float)i);
    memset(start, 0, (n + 2) * 4);
    for (size_t i = 0; i < t->ntokens; i++) if (t->tokens[i] != NONE) start[t->tokens[i] + 2]++;
    for (uint32_t i = 2; i < n + 2; i++) start[i] += start[i - 1];
    for (size_t i = 0; i < t->ntokens; i++) if (t->tokens[i] != NONE) occ[start[t->tokens[i] + 1]++] = (uint32_t)i;
    /* init: by last byte */
    uint32_t bytes[256] = {0};
    uint8_t of[256];
    for (uint32_t i = 0; i < n; i++) bytes[t->text[t->at[i] + t->len[i] - 1]] += t->count[i];
    memset(of, (int)k - 1, 256);
    for (uint32_t j = 0; j + 1 < k; j++) {
        int best = 0;
        for (int b = 1; b < 256; b++) if (bytes[b] > bytes[best]) best = b;
        of[best] = (uint8_t)j;
        bytes[best] = 0;
    }
    for (uint32_t i = 0; i < n; i++) class[i] = of[t->text[t->at[i] + t->len[i] - 1]];
#define CTX(x) ((x) == NONE ? k : class[x])
    for (size_t i = 1; i < t->ntokens; i++) if (t->tokens[i] != NONE) {
        c->cell[CTX(t->tokens[i - 1])][class[t->tokens[i]]]++;
        c->row[CTX(t->tokens[i - 1])]++;
        c->col[class[t->tokens[i]]]++;
    }
    double margin = getenv("MARGIN") ? atof(getenv("MARGIN")) : 0;
    int iters = getenv("ITERS") ? atoi(getenv("ITERS")) : 4;
    for (int iter = 0; iter < iters; iter++) {
        uint32_t moved = 0;
        for (uint32_t x = 0; x < n; x++) {
            uint32_t a = class[x];
            float s[33] = {0}, r[33] = {0};
            double self = 0, S = 0, R = 0;
            if (start[x + 1] == start[x]) continue;
            for (uint32_t o = start[x]; o < start[x + 1]; o++) {
                uint32_t before = t->tokens[occ[o] - 1], after = occ[o] + 1 < t->ntokens ? t->tokens[occ[o] + 1] : NONE;
                R++;
                if (before == x) self++;
                else r[CTX(before)]++;
                if (after == NONE) continue;
                S++;
                if (after != x) s[class[after]]++;
            }
            /* remove */
            for (uint32_t j = 0; j <= k; j++) c->cell[j][a] -= r[j];
            for (uint32_t j = 0; j < k; j++) c->cell[a][j] -= s[j];
            c->cell[a][a] -= self;
            c->row[a] -= S;
            c->col[a] -= R;
            uint8_t nzs[32], nzr[33];
            int ns = 0, nr = 0;
            for (uint32_t j = 0; j < k; j++) if (s[j]) nzs[ns++] = (uint8_t)j;
            for (uint32_t j = 0; j <= k; j++) if (r[j]) nzr[nr++] = (uint8_t)j;
            double best = -1e300;
            uint32_t to = a;
            for (uint32_t b = 0; b < k; b++) {
                double g = 0;
                for (int q = 0; q < ns; q++) { uint32_t j = nzs[q]; if (j != b) g += xlogx(c, c->cell[b][j] + s[j]) - xlogx(c, c->cell[b][j]); }
                for (int q = 0; q < nr; q++) { uint32_t j = nzr[q]; if (j != b) g += xlogx(c, c->cell[j][b] + r[j]) - xlogx(c, c->cell[j][b]); }
                double both = s[b] + r[b] + self;
                if (both > 0) g += xlogx(c, c->cell[b][b] + both) - xlogx(c, c->cell[b][b]);
                g -= xlogx(c, c->row[b] + S) - xlogx(c, c->row[b]);
                g -= xlogx(c, c->col[b] + R) - xlogx(c, c->col[b]);
                if (b == a) g += margin;
                if (g > best) best = g, to = b;
            }
            moved += to != a;
            class[x] = (uint8_t)to;
            a = to;
            for (uint32_t j = 0; j <= k; j++) c->cell[j][a] += r[j];
            for (uint32_t j = 0; j < k; j++) c->cell[a][j] += s[j];
            c->cell[a][a] += self;
            c->row[a] += S;
            c->col[a] += R;
        }
        double F = 0, total = 0;
        for (uint32_t i = 0; i <= k; i++) { F -= xlogx(c, c->row[i]); for (uint32_t j = 0; j < k; j++) F += xlogx(c, c->cell[i][j]); total += c->row[i]; }
        for (uint32_t j = 0; j < k; j++) F -= xlogx(c, c->col[j]);
        F += total * log2(total);
        if (getenv("VERBOSE")) printf("iter %d moved %u MI %.4f bits/token tokens %.0f\n", iter, moved, F / total, total);
    }
    m->free(c), m->free(start), m->free(occ);
    return true;
}
