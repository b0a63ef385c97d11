/* exact_times.c: see exact_times.h. */
#include "keyspace/exact_times.h"

#define CELLS_LOG2 10

typedef struct cell {
    uint64_t mark;
    int64_t at_ms;
} cell;

static cell cells[1 << CELLS_LOG2];

/* Keys of one stem have one hash (core/base/stem.h); the factor is that of Fibonacci hashing. */
static uint64_t mark_of(const map_key *k) {
    return k->hash + k->suffix * UINT64_C(0x9e3779b97f4a7c15);
}

static cell *cell_of(uint64_t mark) {
    return &cells[mark >> (64 - CELLS_LOG2)];
}

void exact_times_note(const map_key *k, int64_t at_ms) {
    uint64_t mark = mark_of(k);
    if (at_ms != EXPIRY_NEVER) *cell_of(mark) = (cell){mark, at_ms};
}

bool exact_times_know(const map_key *k, const map_pos *pos) {
    uint64_t mark = mark_of(k);
    const cell *c = cell_of(mark);
    return c->mark == mark && c->at_ms >= map_expiry_told_ms(pos) && c->at_ms <= map_expiry_ms(pos);
}

int64_t exact_times_told_ms(const map_key *k, const map_pos *pos) {
    return exact_times_know(k, pos) ? cell_of(mark_of(k))->at_ms : map_expiry_told_ms(pos);
}
