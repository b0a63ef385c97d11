/* exact_times.c: see exact_times.h. */
#include "keyspace/exact_times.h"

#include <string.h>

#define SETS_LOG2 8
#define WAYS      4

typedef struct noted {
    uint64_t mark;
    int64_t at_ms;
} noted;

static _Alignas(64) noted sets[1 << SETS_LOG2][WAYS];

/* Keys of one stem have one hash (core/base/stem.h); the factor is that of Fibonacci hashing. */
static uint64_t mark_of(const map *m, const map_key *k) {
    return k->hash ^ (m->owner << 8 | k->suffix) * UINT64_C(0x9e3779b97f4a7c15);
}

static noted *set_of(uint64_t mark) {
    return sets[mark >> (64 - SETS_LOG2)];
}

void exact_times_note(const map *m, const map_key *k, int64_t at_ms) {
    if (at_ms == EXPIRY_NEVER) return;
    uint64_t mark = mark_of(m, k);
    noted *set = set_of(mark);
    size_t i = 0;
    while (i < WAYS - 1 && set[i].mark != mark) i++;
    memmove(set + 1, set, i * sizeof *set);
    set[0] = (noted){mark, at_ms};
}

int64_t exact_times_of(const map *m, const map_key *k, const map_pos *pos) {
    uint64_t mark = mark_of(m, k);
    const noted *set = set_of(mark);
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].mark != mark) continue;
        int64_t at_ms = set[i].at_ms;
        bool open = at_ms >= map_expiry_told_ms(pos) && at_ms <= map_expiry_ms(pos);
        return open ? at_ms : EXPIRY_NEVER;
    }
    return EXPIRY_NEVER;
}
