/*
 * phrase_lexicon.c: growing phrases (OnPair, arXiv 2508.02280) and weeding them out.
 *
 * Growing alone keeps what was frequent. Whether a phrase is worth its place is another question:
 * random digits make every pair of digits frequent, and none of them saves anything over its two
 * digits. So each phrase is priced against the best that could be written without it, as in the
 * pruning of unigram language models (Kudo, arXiv 1804.10959).
 */
#include "phrase/phrase_lexicon.h"
#include "base/pace.h"

#include <math.h>

#define CANDIDATES_MIN 4096u
#define CANDIDATES_MAX (1u << 18)
#define PAIRS_MAX      (1u << 22)
/* How often a record counts here at most: its pairs have been seen often enough then. */
#define GROW_TIMES_MAX 128
#define PACE_EVERY     1024 /* records that are passed over */
/* What a phrase must save in the sample to be kept, bits; and what one code less is worth in
 * speed and in what codes lose by being whole bits. */
#define WORTH_KEEPING  20.0f
#define WORTH_OF_TOKEN 1.0f
/* The fast parse is tried on one record in so many, all that count as often, and so many bytes of
 * each; what it loses by a phrase counts by this part. */
#define REGRET_EVERY  8
#define REGRET_BYTES  4096
#define REGRET_WEIGHT 0.5f
/* What a phrase takes in a dictionary beside its text, for itself and for each marker. Bytes. */
#define PHRASE_ROOM 18
#define MARKER_ROOM 12
/* What a pair of neighbours must promise to save to be made a phrase. Bits. And so many of all
 * phrases may be made of neighbours at a time. */
#define WORTH_JOINING 12.0f
#define JOINED_SHARE  2
#define JOIN_TOKENS   (4u << 20) /* that neighbours are looked for among */
/* Before any is known, each pseudo-phrase of copies is taken for 1 in this of all tokens. */
#define COPIES_AT_FIRST 256

static uint32_t power_of_two(size_t at_least) {
    uint32_t n = 1;
    while (n < at_least) n *= 2;
    return n;
}

static uint32_t clamp(size_t value, uint32_t min, uint32_t max) {
    return value < min ? min : value > max ? max : (uint32_t)value;
}

static unsigned filter_bits(const lexicon *x) {
    return 1u + (unsigned)__builtin_ctz(power_of_two(x->max));
}

static void empty_matcher(lexicon *x) {
    memset(x->match.cells, 0, x->match.cell_count * sizeof *x->match.cells);
    memset(x->match.filter, 0, (size_t)1 << filter_bits(x));
    x->cells_used = 0;
}

/* Makes the matcher no larger than it must be for phrases that take so many cells, and for as many
 * more: tables that fit a cache are faster. */
static void size_matcher(lexicon *x, uint32_t cells) {
    cells = 3 * cells + 8 * CANDIDATES_MIN;
    if (cells < x->match.cell_count) x->match.cell_count = cells;
}

/* What a phrase of so many bytes takes of the matcher at most. Cells. */
static inline uint32_t cells_for(uint32_t len) {
    return 1 + (len - 1) / 8;
}

/* Makes the phrase of number i, whose text is there, known to the matcher. */
static void make_known(lexicon *x, uint32_t i) {
    if (x->len[i] == 1)
        x->match.single[x->text[x->at[i]]] = i;
    else
        x->cells_used += phrase_match_add(&x->match, x->at[i], x->len[i], i);
}

/* Adds the phrase `a` followed by `b`, if there is room: returns its number, else b's. */
static uint32_t join(lexicon *x, uint32_t a, uint32_t b) {
    uint32_t len = x->len[a] + x->len[b], i = x->n;
    if (x->n == x->max || x->text_len + len > x->text_max) return b;
    if (x->cells_used + MATCH_TIERS > x->match.cell_count / 3 * 2) return b;
    x->at[i] = x->text_len;
    x->len[i] = (uint8_t)len;
    memcpy(x->text + x->text_len, x->text + x->at[a], x->len[a]);
    memcpy(x->text + x->text_len + x->len[a], x->text + x->at[b], x->len[b]);
    x->text_len += len;
    x->n++;
    make_known(x, i);
    return i;
}

bool lexicon_init(lexicon *x, const mem *m, size_t sample_bytes, bool cheapest) {
    *x = (lexicon){.mem = m, .max = clamp(sample_bytes / 8, CANDIDATES_MIN, CANDIDATES_MAX)};
    x->text_max = 16 * x->max;
    x->match.cell_count = 3 * x->max;
    x->match.filter_shift = 64 - filter_bits(x);
    memcpy(x->match.secret, phrase_secret, sizeof x->match.secret);
    x->text = m->alloc(x->text_max + PHRASE_TEXT_PAD);
    x->at = m->alloc(x->max * sizeof *x->at);
    x->count = m->alloc((x->max + COPY_CODES) * sizeof *x->count);
    x->len = m->alloc(x->max);
    x->match.cells = m->alloc(x->match.cell_count * sizeof *x->match.cells);
    x->match.filter = m->alloc((size_t)1 << filter_bits(x));
    x->match.text = x->text;
    x->copies = cheapest;
    if (cheapest) {
        x->parser = m->alloc(sizeof *x->parser);
        x->cost = m->alloc(x->max * sizeof *x->cost);
        x->record = m->alloc(x->max * sizeof *x->record);
        x->regret = m->alloc(x->max * sizeof *x->regret);
        if (!x->parser || !x->cost || !x->record || !x->regret) return false;
    }
    if (!x->text || !x->at || !x->count || !x->len || !x->match.cells || !x->match.filter)
        return false;
    memset(x->text, 0, x->text_max + PHRASE_TEXT_PAD);
    empty_matcher(x);
    for (x->n = 0; x->n < 256; x->n++) {
        x->text[x->n] = (uint8_t)x->n;
        x->at[x->n] = x->n;
        x->len[x->n] = 1;
        make_known(x, x->n);
    }
    x->text_len = 256;
    return true;
}

void lexicon_free(lexicon *x) {
    void *blocks[] = {x->text,         x->at,     x->count, x->len,    x->match.cells,
                      x->match.filter, x->parser, x->cost,  x->record, x->regret};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i]) x->mem->free(blocks[i]);
}

void lexicon_take(lexicon *x, const lexicon *from) {
    for (uint32_t i = 256; i < from->n; i++) {
        x->at[x->n] = x->text_len;
        x->len[x->n] = from->len[i];
        memcpy(x->text + x->text_len, from->text + from->at[i], from->len[i]);
        x->text_len += from->len[i];
        make_known(x, x->n++);
    }
    x->copies = from->copies;
    x->copies_known = true;
    for (uint32_t i = 0; i < COPY_CODES; i++)
        x->copy_rate[i] = (float)from->copy_count[i] / ((float)from->parsed + 1);
}

/* ---- growing --------------------------------------------------------------------------------- */

/* Pairs of phrases and how often they were seen: [first:20][second:20][count:24]. */
typedef struct pairs {
    uint64_t *cells;
    uint32_t n, used;
} pairs;

/* Counts a pair and returns its count. Pairs that come when the table is full are not counted. */
static uint32_t count_pair(pairs *t, uint32_t a, uint32_t b) {
    uint64_t key = (uint64_t)a << 20 | b;
    uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (t->n - 1);
    while (t->cells[i] != 0 && t->cells[i] >> 24 != key) i = (i + 1) & (t->n - 1);
    if (t->cells[i] == 0) {
        if (t->used == t->n / 4 * 3) return 0;
        t->used++;
        t->cells[i] = key << 24;
    }
    return (uint32_t)(++t->cells[i] & 0xffffff);
}

static unsigned match(const lexicon *x, const uint8_t *p, size_t left, uint32_t *phrase) {
    uint8_t last[8] = {0};
    if (left < 8) p = memcpy(last, p, left);
    return phrase_match(&x->match, p, left, phrase);
}

static void grow_by(lexicon *x, pairs *t, const phrase_sample *sample, uint32_t often) {
    const uint8_t *p = sample->data;
    uint32_t before = LEXICON_START, phrase;
    for (size_t left = sample->len; left > 0;) {
        unsigned len = match(x, p, left, &phrase);
        if (before != LEXICON_START && x->len[before] + len <= PHRASE_LEN_MAX &&
            count_pair(t, before, phrase) == often)
            phrase = join(x, before, phrase);
        before = phrase;
        p += len;
        left -= len;
    }
}

/* Room to count about so many. False: out of memory. */
static bool make_pairs(const lexicon *x, pairs *t, size_t about) {
    *t = (pairs){.n = clamp(power_of_two(about), CANDIDATES_MIN, PAIRS_MAX)};
    t->cells = x->mem->alloc(t->n * sizeof *t->cells);
    if (t->cells) memset(t->cells, 0, t->n * sizeof *t->cells);
    return t->cells;
}

bool lexicon_grow(lexicon *x, const sample_set *set, uint32_t often) {
    pairs t;
    if (!make_pairs(x, &t, set->bytes / 3)) return false;
    /* Records that come again do so when all have come, as it would be in a sample. */
    bool more = true;
    for (uint32_t time = 0; more && time < GROW_TIMES_MAX; time++) {
        more = false;
        for (uint32_t i = 0; i < set->n; i++) {
            if (i % PACE_EVERY == 0 || sample_times(set, i) > time) pace_keep();
            if (sample_times(set, i) <= time) continue;
            grow_by(x, &t, &set->list[i], often);
            more = true;
        }
    }
    x->mem->free(t.cells);
    return true;
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* Tokens, of which the first `max` are kept. */
typedef struct token_writer {
    uint32_t *list;
    size_t n, max;
} token_writer;

static inline void put_token(token_writer *w, uint32_t token) {
    if (w->n++ < w->max) w->list[w->n - 1] = token;
}

/* Puts the tokens from `first` on, those of one record, as often again. */
static void put_again(token_writer *w, size_t first, uint32_t times) {
    size_t n = w->n - first;
    for (; times > 0; times--)
        for (size_t i = first; i < first + n; i++) put_token(w, i < w->max ? w->list[i] : 0);
}

static void parse_fast(lexicon *x, const phrase_sample *sample, uint32_t times, token_writer *w) {
    const uint8_t *p = sample->data;
    for (size_t left = sample->len; left > 0;) {
        uint32_t phrase;
        unsigned len = match(x, p, left, &phrase);
        x->count[phrase] += times;
        put_token(w, phrase);
        p += len;
        left -= len;
    }
}

static void note_record(lexicon *x, uint32_t phrase, uint32_t record, uint32_t times) {
    if (x->record[phrase] == 0 && times == 1)
        x->record[phrase] = record + 1;
    else if (x->record[phrase] != record + 1)
        x->record[phrase] = LEXICON_SPREAD;
}

static void parse_cheapest(lexicon *x, const phrase_sample *sample, uint32_t record, uint32_t times,
                           token_writer *w) {
    size_t end;
    parse_begin(x->parser, sample->data, sample->len);
    while (parse_next(x->parser)) {
        for (uint32_t i = 0; i < x->parser->tokens; i++) {
            const parse_node *token = parse_token(x->parser, i, &end);
            put_token(w, token->payload);
            if (token->payload >= PARSE_COPY) {
                x->copy_count[token->payload - PARSE_COPY] += times;
            } else {
                x->count[token->payload] += times;
                note_record(x, token->payload, record, times);
            }
        }
    }
}

/* Cuts the record of this number, which counts some times. */
static void parse(lexicon *x, const sample_set *set, uint32_t record, bool cheapest,
                  token_writer *w) {
    const phrase_sample *sample = &set->list[record];
    uint32_t times = sample_times(set, record);
    size_t first = w->n;
    put_token(w, LEXICON_START);
    if (cheapest)
        parse_cheapest(x, sample, record, times, w);
    else
        parse_fast(x, sample, times, w);
    put_again(w, first, times - 1);
}

static uint16_t cost_of(float tokens, uint32_t count) {
    return (uint16_t)(PARSE_BIT * log2f(tokens / ((float)count + 0.5f)));
}

static float count_all(const lexicon *x) {
    float tokens = 1;
    for (uint32_t i = 0; i < x->n; i++) tokens += (float)x->count[i];
    for (uint32_t i = 0; i < COPY_CODES; i++) tokens += (float)x->copy_count[i];
    return tokens;
}

/* Prices all by how often they were used. */
static void price(lexicon *x) {
    float tokens = count_all(x);
    for (uint32_t i = 0; i < x->n; i++) x->cost[i] = cost_of(tokens, x->count[i]);
    for (uint32_t i = 0; i < COPY_CODES; i++) x->copy_cost[i] = cost_of(tokens, x->copy_count[i]);
}

static void open_parser(lexicon *x) {
    price(x);
    x->parser->d = NULL;
    x->parser->match = &x->match;
    x->parser->phrase_cost = x->cost;
    x->parser->copy_cost = x->copy_cost;
    x->parser->copies = x->copies;
    memset(x->record, 0, x->n * sizeof *x->record);
}

static void forget_counts(lexicon *x) {
    memset(x->count, 0, x->n * sizeof *x->count);
    memset(x->copy_count, 0, sizeof x->copy_count);
}

void lexicon_count(lexicon *x, const sample_set *set) {
    token_writer w = {0};
    forget_counts(x);
    for (uint32_t i = 0; i < set->n; i++) {
        pace_keep();
        parse(x, set, i, false, &w);
    }
    for (uint32_t i = 0; i < COPY_CODES; i++)
        x->copy_count[i] = x->copies_known ? (uint32_t)(x->copy_rate[i] * (float)set->bytes)
                                           : (uint32_t)w.n / COPIES_AT_FIRST;
}

size_t lexicon_tokens_max(const sample_set *set) {
    size_t max = set->bytes + 1;
    for (uint32_t i = 0; i < set->n; i++) max += sample_times(set, i);
    return max;
}

size_t lexicon_parse(lexicon *x, const sample_set *set, uint32_t *tokens, size_t max) {
    token_writer w = {tokens, 0, max};
    if (x->parser) open_parser(x);
    forget_counts(x);
    x->parsed = set->bytes;
    for (uint32_t i = 0; i < set->n; i++) {
        pace_keep();
        parse(x, set, i, x->parser, &w);
    }
    return w.n;
}

/* ---- joining neighbours ---------------------------------------------------------------------- */

static bool is_known(const lexicon *x, const uint8_t *text, uint32_t len) {
    uint32_t phrase;
    return match(x, text, len, &phrase) == len;
}

/* Joins a pair that was seen so often, if that saves enough. */
static void join_if_worth(lexicon *x, uint32_t a, uint32_t b, uint32_t count, float tokens) {
    uint8_t text[PHRASE_LEN_MAX + 8];
    uint32_t len = x->len[a] + x->len[b];
    float bits = (float)(x->cost[a] + x->cost[b]) / PARSE_BIT + WORTH_OF_TOKEN;
    float saved = (float)count * (bits - log2f(tokens / (float)count));
    if (count < 2 || saved < WORTH_JOINING) return;
    memcpy(text, x->text + x->at[a], x->len[a]);
    memcpy(text + x->len[a], x->text + x->at[b], x->len[b]);
    if (is_known(x, text, len)) return;
    uint32_t joined = join(x, a, b);
    if (joined != b) x->count[joined] = count;
}

/* Counts the pairs of neighbours among tokens. */
static void count_pairs(const lexicon *x, pairs *t, const uint32_t *tokens, size_t n) {
    for (size_t i = 1; i < n; i++) {
        uint32_t a = tokens[i - 1], b = tokens[i];
        if (a >= LEXICON_COPY || b >= LEXICON_COPY) continue;
        if (x->len[a] + x->len[b] <= PHRASE_LEN_MAX) count_pair(t, a, b);
    }
}

/* Makes phrases of at most `most` pairs of neighbours among tokens that are worth it. False: out of
 * memory. */
static bool join_neighbours(lexicon *x, const uint32_t *tokens, size_t n, uint32_t most) {
    pairs t;
    uint32_t before = x->n;
    if (!make_pairs(x, &t, n)) return false;
    count_pairs(x, &t, tokens, n);
    price(x);
    float all = count_all(x);
    for (uint32_t i = 0; i < t.n && x->n - before < most; i++)
        if (t.cells[i])
            join_if_worth(x, (uint32_t)(t.cells[i] >> 44), (uint32_t)(t.cells[i] >> 24) & 0xfffff,
                          (uint32_t)t.cells[i] & 0xffffff, all);
    x->mem->free(t.cells);
    return true;
}

/* ---- weeding out ----------------------------------------------------------------------------- */

/* Writes the bits that the cheapest parse of each end of a record takes, without copies. */
static void cost_of_rest(const lexicon *x, const uint8_t *p, uint32_t n, uint32_t *rest) {
    rest[n] = 0;
    for (uint32_t at = n; at-- > 0;) {
        uint8_t tail[8] = {0};
        phrase_found found[PHRASE_LEN_MAX];
        if (n - at < 8) memcpy(tail, p + at, n - at);
        unsigned count = phrase_match_all(&x->match, n - at < 8 ? tail : p + at, n - at, found);
        rest[at] = UINT32_MAX;
        for (unsigned i = 0; i < count; i++) {
            uint32_t cost = x->cost[found[i].payload] + rest[at + found[i].len];
            if (cost < rest[at]) rest[at] = cost;
        }
    }
}

void lexicon_regret(lexicon *x, const sample_set *set) {
    uint32_t rest[REGRET_BYTES + 1];
    if (!x->parser) return;
    price(x);
    memset(x->regret, 0, x->n * sizeof *x->regret);
    for (uint32_t i = 0; i < set->n; i++) {
        uint32_t times = sample_times(set, i);
        bool stands_for_others = times < REGRET_EVERY;
        if (stands_for_others && i % REGRET_EVERY > 0) continue;
        float weight = (float)times * (stands_for_others ? REGRET_EVERY : 1);
        pace_keep();
        const uint8_t *p = set->list[i].data;
        uint32_t n = set->list[i].len < REGRET_BYTES ? set->list[i].len : REGRET_BYTES;
        cost_of_rest(x, p, n, rest);
        for (uint32_t at = 0, phrase; at < n;) {
            uint32_t end = at + match(x, p + at, n - at, &phrase);
            uint32_t lost = x->cost[phrase] + rest[end] - rest[at];
            x->regret[phrase] += (float)lost * weight / PARSE_BIT;
            at = end;
        }
    }
}

/* Bits that a phrase saves in the sample, against writing its bytes with other phrases. */
static float saves(const lexicon *x, uint32_t i, float tokens) {
    const uint8_t *p = x->text + x->at[i];
    float without = -WORTH_OF_TOKEN, uses = (float)x->count[i];
    if (uses == 0) return 0;
    for (unsigned at = 0; at < x->len[i];) {
        uint32_t part;
        at += match(x, p + at, at == 0 ? x->len[i] - 1u : x->len[i] - at, &part);
        without += log2f(tokens / ((float)x->count[part] + uses)) + WORTH_OF_TOKEN;
    }
    return uses * (without - log2f(tokens / uses));
}

/* The same where the cheapest parse would write its bytes; one that no two records have saves
 * nothing in others. */
static float saves_cheapest(const lexicon *x, uint32_t i) {
    const uint8_t *p = x->text + x->at[i];
    uint32_t best[PHRASE_LEN_MAX + 1], len = x->len[i];
    if (x->count[i] == 0 || x->record[i] != LEXICON_SPREAD) return 0;
    memset(best, 0xff, sizeof best);
    best[0] = 0;
    for (uint32_t at = 0; at < len; at++) {
        uint8_t tail[16] = {0};
        phrase_found found[PHRASE_LEN_MAX];
        memcpy(tail, p + at, len - at < 8 ? len - at : 8);
        unsigned n = phrase_match_all(&x->match, len - at < 8 ? tail : p + at, len - at, found);
        for (unsigned f = 0; f < n; f++) {
            uint32_t end = at + found[f].len;
            uint32_t cost =
                best[at] + x->cost[found[f].payload] + (uint32_t)(WORTH_OF_TOKEN * PARSE_BIT);
            if (found[f].payload != i && cost < best[end]) best[end] = cost;
        }
    }
    float saved = (float)best[len] / PARSE_BIT - WORTH_OF_TOKEN - (float)x->cost[i] / PARSE_BIT;
    return (float)x->count[i] * saved - x->regret[i] * REGRET_WEIGHT;
}

/* The value that all but `most` of the values are not above. */
static float limit_of(const float *value, uint32_t n, uint32_t most) {
    float low = 0, high = 1e12f;
    for (int i = 0; i < 60; i++) {
        float middle = sqrtf((low + 1) * (high + 1)) - 1;
        uint32_t above = 0;
        for (uint32_t j = 0; j < n; j++) above += value[j] > middle;
        if (above > most)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void renumber(lexicon *x, uint32_t i, uint32_t to) {
    x->at[to] = x->at[i];
    x->len[to] = x->len[i];
    x->count[to] = x->count[i];
    make_known(x, to);
}

/* Bits that a phrase saves in the sample for each byte of memory that it takes; 0: too few. */
static float worth(const lexicon *x, uint32_t i, float tokens) {
    float saved = x->parser ? saves_cheapest(x, i) : saves(x, i, tokens);
    unsigned room = PHRASE_ROOM + x->len[i] + (cells_for(x->len[i]) - 1) * MARKER_ROOM;
    return saved < WORTH_KEEPING ? 0 : saved / (float)room;
}

/* Keeps the `most` worthiest of the first `n` phrases, those worth more than `least`, and all that
 * come behind them. False: out of memory. */
static bool keep(lexicon *x, uint32_t n, uint32_t most, float least) {
    float *value = x->mem->alloc(x->n * sizeof *value), tokens = 0;
    if (!value) return false;
    for (uint32_t i = 0; i < x->n; i++) tokens += (float)x->count[i];
    for (uint32_t i = 0; i < x->n; i++)
        value[i] = i < 256 || i >= n ? INFINITY : worth(x, i, tokens);
    float limit = fmaxf(least, limit_of(value + 256, n - 256, most < 256 ? 0 : most - 256));
    uint32_t kept = 0, cells = 0;
    for (uint32_t i = 256; i < x->n; i++)
        if (value[i] > limit) cells += cells_for(x->len[i]);
    size_matcher(x, cells);
    empty_matcher(x);
    for (uint32_t i = 0; i < x->n; i++)
        if (value[i] > limit) renumber(x, i, kept++);
    x->n = kept;
    x->mem->free(value);
    return true;
}

bool lexicon_keep(lexicon *x, uint32_t most, float least) {
    return keep(x, x->n, most, least);
}

bool lexicon_renew(lexicon *x, const sample_set *set, uint32_t most) {
    size_t max = lexicon_tokens_max(set);
    if (max > JOIN_TOKENS) max = JOIN_TOKENS;
    uint32_t *tokens = x->mem->alloc(max * sizeof *tokens), known = x->n;
    if (!tokens) return false;
    size_t n = lexicon_parse(x, set, tokens, max);
    bool joined = join_neighbours(x, tokens, n < max ? n : max, most / JOINED_SHARE);
    x->mem->free(tokens);
    if (!joined) return false;
    lexicon_regret(x, set);
    return keep(x, known, most - (x->n - known), 0);
}
