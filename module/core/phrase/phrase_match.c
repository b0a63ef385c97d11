/* phrase_match.c: the parts of phrase_match.h that need not be fast. */
#include "phrase/phrase_match.h"

/* For programs that have nobody to fear: digits of the golden ratio and of pi. */
uint64_t phrase_secret[2] = {0x9e3779b97f4a7c15u, 0x243f6a8885a308d3u};

/* The first `len` bytes at p, at most 8, as one word. At least 8 bytes before their end can be
 * read. */
static inline uint64_t word_at(const uint8_t *p, size_t len) {
    return len >= 8 ? phrase_load64(p) : phrase_load64(p + len - 8) >> (64 - 8 * len);
}

/* Whether n >= 8 bytes are the same. */
static inline bool equal(const uint8_t *a, const uint8_t *b, unsigned n) {
    for (unsigned i = 0; i + 8 < n; i += 8)
        if (phrase_load64(a + i) != phrase_load64(b + i)) return false;
    return phrase_load64(a + n - 8) == phrase_load64(b + n - 8);
}

static inline uint32_t after(const phrase_matcher *t, uint32_t i) {
    return i + 1 == t->cell_count ? 0 : i + 1;
}

/* The cell of `print` for the `bytes` >= 8 bytes at p, or the empty cell where it would go. */
static inline uint64_t *find(const phrase_matcher *t, uint64_t hash, uint64_t print,
                             const uint8_t *p, unsigned bytes) {
    uint32_t i = match_home(t, hash);
    while (t->cells[i] != 0) {
        if (t->cells[i] >> 46 == print && equal(match_text(t, t->cells[i]), p, bytes)) break;
        i = after(t, i);
    }
    return &t->cells[i];
}

/* That of the phrase of more than 8 bytes at p, of which the last `len` are those of `word`, behind
 * others of hash `before`. 0: there is none. */
static inline uint64_t find_long(const phrase_matcher *t, uint64_t before, uint64_t word,
                                 unsigned len, const uint8_t *p, unsigned bytes) {
    uint64_t hash = match_hash(t, before, word & match_mask(len), len);
    return *find(t, hash, match_print(hash, bytes), p, bytes);
}

/* A marker's hash, of the hash of the words that it stands behind. */
static inline uint64_t marker_hash(const phrase_matcher *t, uint64_t before) {
    return match_hash(t, before, 0, MATCH_MARKER_LEN);
}

static inline uint64_t marker_print(const phrase_matcher *t, uint64_t before, unsigned words) {
    return match_print(marker_hash(t, before), MATCH_MARKER + words);
}

/* That of the marker behind so many words at p, or the empty one where it would go. */
static inline uint64_t *find_marker(const phrase_matcher *t, uint64_t before, const uint8_t *p,
                                    unsigned words) {
    return find(t, marker_hash(t, before), marker_print(t, before, words), p, 8 * words);
}

static uint64_t *find_empty(const phrase_matcher *t, uint64_t hash) {
    uint32_t i = match_home(t, hash);
    while (t->cells[i] != 0) i = after(t, i);
    return &t->cells[i];
}

static uint64_t make_cell(uint64_t print, uint32_t payload, uint32_t offset) {
    return print << 46 | (uint64_t)payload << 22 | offset;
}

/* Sets in the filter that there is a phrase like the one at p. */
static void add_to_filter(phrase_matcher *t, const uint8_t *p, unsigned len) {
    unsigned bit = len > 8 ? 7 : len - 2;
    uint64_t word = phrase_load64(p) << (len > 8 ? 0 : 64 - 8 * len);
    t->filter[word * MATCH_FILTER_HASH >> t->filter_shift] |= (uint8_t)(1u << bit);
}

unsigned phrase_match_add(phrase_matcher *t, uint32_t offset, unsigned len, uint32_t payload) {
    const uint8_t *p = t->text + offset;
    uint64_t before = 0;
    unsigned words = 0, last = len, took = 1;
    add_to_filter(t, p, len);
    for (; last > 8; last -= 8) {
        before = match_hash(t, before, phrase_load64(p + 8 * words), 8);
        uint64_t *marker = find_marker(t, before, p, ++words);
        if (*marker == 0) {
            *marker = make_cell(marker_print(t, before, words), 0, offset);
            took++;
        }
        *marker |= (uint64_t)(last > 16 ? 0x100 : 1u << (last - 9)) << 22;
    }
    uint64_t hash = match_hash(t, before, phrase_load64(p + 8 * words) & match_mask(last), last);
    *find_empty(t, hash) = make_cell(match_print(hash, len), payload, offset);
    return took;
}

/* Of a marker's lengths, bit by bit, those that `left` bytes have room for. */
static inline unsigned lens_within(uint32_t marker, size_t left) {
    return marker & (left < 8 ? (1u << left) - 1 : 0xff);
}

unsigned phrase_match_long(const phrase_matcher *t, const uint8_t *p, size_t left,
                           uint32_t *payload) {
    uint64_t before[MATCH_TIERS];
    uint32_t lens[MATCH_TIERS];
    unsigned tier = 1;
    before[0] = 0;
    for (; tier < MATCH_TIERS && left > 8 * tier; tier++) {
        before[tier] = match_hash(t, before[tier - 1], phrase_load64(p + 8 * (tier - 1)), 8);
        uint64_t marker = *find_marker(t, before[tier], p, tier);
        if (marker == 0) break;
        lens[tier] = match_payload(marker);
        if (!(lens[tier] & 0x100)) {
            tier++;
            break;
        }
    }
    while (--tier > 0) {
        uint64_t word = word_at(p + 8 * tier, left - 8 * tier);
        unsigned may = lens_within(lens[tier], left - 8 * tier);
        while (may > 0) {
            unsigned len = 32u - (unsigned)__builtin_clz(may);
            uint64_t cell = find_long(t, before[tier], word, len, p, 8 * tier + len);
            may ^= 1u << (len - 1);
            if (cell == 0) continue;
            *payload = match_payload(cell);
            return 8 * tier + len;
        }
    }
    return 0;
}

/* All phrases of more than 8 bytes. Returns how many. */
static unsigned match_all_long(const phrase_matcher *t, const uint8_t *p, size_t left,
                               phrase_found *found) {
    unsigned n = 0;
    uint64_t before = 0;
    for (unsigned tier = 1; tier < MATCH_TIERS && left > 8 * tier; tier++) {
        before = match_hash(t, before, phrase_load64(p + 8 * (tier - 1)), 8);
        uint64_t marker = *find_marker(t, before, p, tier);
        if (marker == 0) break;
        uint32_t lens = match_payload(marker);
        uint64_t word = word_at(p + 8 * tier, left - 8 * tier);
        for (unsigned may = lens_within(lens, left - 8 * tier); may > 0; may &= may - 1) {
            unsigned len = 1u + (unsigned)__builtin_ctz(may);
            uint64_t cell = find_long(t, before, word, len, p, 8 * tier + len);
            if (cell != 0) found[n++] = (phrase_found){8 * tier + len, match_payload(cell)};
        }
        if (!(lens & 0x100)) break;
    }
    return n;
}

unsigned phrase_match_all(const phrase_matcher *t, const uint8_t *p, size_t left,
                          phrase_found *found) {
    uint64_t word = phrase_load64(p);
    unsigned eight = match_filter(t, word, 8), n = 1;
    found[0] = (phrase_found){1, t->single[word & 0xff]};
    for (unsigned lens = match_lens(t, word, eight, left); lens; lens &= lens - 1) {
        unsigned len = 2u + (unsigned)__builtin_ctz(lens);
        found[n].len = len;
        n += match_word(t, word, len, &found[n].payload);
    }
    if (eight & MATCH_LONGER && left > 8) n += match_all_long(t, p, left, found + n);
    return n;
}
