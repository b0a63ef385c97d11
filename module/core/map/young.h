/*
 * young.h: values that are not encoded yet, over all maps: how many there may be, and what became
 * of them. How one lives in its map: map_settle.h.
 */
#ifndef CKV_YOUNG_H
#define CKV_YOUNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shorter values are encoded in less time than the detour takes; longer ones are stored as they are
 * for good (CODEC_ZSTD_MAX). Bytes. */
#define YOUNG_VALUE_MIN 256
#define YOUNG_VALUE_MAX (1u << 20)
/* What a young record takes beside its value, about. */
#define YOUNG_EXTRA 128

struct map;

typedef struct young_state {
    uint64_t limit;       /* bytes that they may take; 0: there are no new ones */
    uint64_t limit_moved; /* the same of those that become young as they are encoded anew */
    uint64_t bytes; /* that they take as allocated, in maps of a group: nothing else settles */
    uint64_t last_number; /* of a value of any map */
    struct map *ring;     /* the maps of a group that may have something to encode; its first */
    uint32_t maps;        /* in it */
    uint64_t left;        /* records that are young no longer, since the start */
    /* Values, since the start: */
    uint64_t settled; /* that were encoded while young, */
    uint64_t spared;  /* that never met an encoder: overwritten or deleted before, */
    uint64_t at_once; /* that were encoded at once, for lack of room, */
    uint64_t read;    /* and how often one was read while it was young */
} young_state;

/* Whether a value of n bytes is one that can be young at all. */
static inline bool young_is_long(size_t n) {
    return n >= YOUNG_VALUE_MIN && n <= YOUNG_VALUE_MAX;
}

/* Whether a new one of n bytes becomes young where there is room. */
static inline bool young_may_be(const young_state *s, size_t n) {
    return s->limit > 0 && young_is_long(n);
}

/* Whether there is room for one of n bytes; `hot` bytes of the limit are another's (hot.h). */
static inline bool young_has_room(const young_state *s, size_t n, uint64_t hot) {
    return s->bytes + hot + n + YOUNG_EXTRA <= s->limit;
}

#endif
