#include "bench.h"

static size_t index_of(uint64_t ns) {
    if (ns < HISTOGRAM_STEPS) return ns;
    int shift = 63 - __builtin_clzll(ns) - 6;
    return (size_t)(shift + 1) * HISTOGRAM_STEPS + ((ns >> shift) - HISTOGRAM_STEPS);
}

/* The largest value that is counted at an index. */
static uint64_t value_at(size_t index) {
    if (index < HISTOGRAM_STEPS) return index;
    int shift = (int)(index / HISTOGRAM_STEPS) - 1;
    return ((HISTOGRAM_STEPS + index % HISTOGRAM_STEPS + 1) << shift) - 1;
}

void histogram_add(Histogram *h, uint64_t ns) {
    h->counts[index_of(ns)]++;
    h->total++;
    if (ns > h->longest) h->longest = ns;
}

void histogram_merge(Histogram *into, const Histogram *from) {
    for (size_t i = 0; i < sizeof into->counts / sizeof *into->counts; i++)
        into->counts[i] += from->counts[i];
    into->total += from->total;
    if (from->longest > into->longest) into->longest = from->longest;
}

uint64_t histogram_percentile(const Histogram *h, double percent) {
    uint64_t wanted = (uint64_t)((double)h->total * percent / 100.0 + 0.5), seen = 0;
    if (wanted == 0) wanted = 1;
    for (size_t i = 0; i < sizeof h->counts / sizeof *h->counts; i++) {
        seen += h->counts[i];
        if (seen >= wanted) return value_at(i) < h->longest ? value_at(i) : h->longest;
    }
    return h->longest;
}
