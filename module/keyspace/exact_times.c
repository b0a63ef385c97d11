/* exact_times.c: see exact_times.h. */
#include "keyspace/exact_times.h"

#define CELLS_LOG2 10

typedef struct cell {
    uint64_t mark;
    int64_t at_ms;
} cell;

static cell cells[1 << CELLS_LOG2];

/* Keys of one stem have one hash (core/base/stem.h); the factor is that of Fibonacci hashing. */
static uint64_t mark_of(const map *m, const map_key *k) {
    return k->hash ^ (m->owner << 8 | k->suffix) * UINT64_C(0x9e3779b97f4a7c15);
}

static cell *cell_of(uint64_t mark) {
    return &cells[mark >> (64 - CELLS_LOG2)];
}

void exact_times_note(const map *m, const map_key *k, int64_t at_ms) {
    if (at_ms == EXPIRY_NEVER) return;
    uint64_t mark = mark_of(m, k);
    *cell_of(mark) = (cell){mark, at_ms};
}

int64_t exact_times_of(const map *m, const map_key *k, const map_pos *pos) {
    uint64_t mark = mark_of(m, k);
    const cell *c = cell_of(mark);
    bool open = c->at_ms >= map_expiry_told_ms(pos) && c->at_ms <= map_expiry_ms(pos);
    return c->mark == mark && open ? c->at_ms : EXPIRY_NEVER;
}
