/* phrase_parse.c: see phrase_parse.h. */
#include "phrase/phrase_parse.h"

/* Each token costs this beside its bits: what one code less is worth in speed. */
#define TOKEN_COST (PARSE_BIT / 4)
/* So much above a place's cheapest class another one is not kept. */
#define STATE_SLACK (6 * PARSE_BIT)
/* Places with the same beginning that are looked at for a copy, and copies up to so many bytes
 * shorter than the longest one. */
#define CHAIN_MAX    16
#define COPY_SHORTER 8

#define NO_COST UINT32_MAX

/* ---- the record ------------------------------------------------------------------------------ */

/* The bytes at a place, of which 8 can be read. */
static inline const uint8_t *bytes_at(const phrase_parser *p, size_t at) {
    return at + 8 <= p->n ? p->src + at : p->tail + (at + 8 - p->n);
}

void parse_begin(phrase_parser *p, const void *src, size_t n) {
    p->src = src;
    p->n = n;
    p->begin = 0;
    p->tokens = 0;
    p->states[0] = 0;
    p->context = p->d ? p->d->contexts - 1 : 0;
    p->copy = (phrase_copy){0, 0};
    memset(p->tail, 0, sizeof p->tail);
    size_t last = n < 8 ? n : 8;
    memcpy(p->tail + 8 - last, p->src + n - last, last);
    if (!p->copies) return;
    unsigned bits = copy_table_bits(n, PARSE_HEAD_BITS);
    p->head_shift = 32 - bits;
    memset(p->head, 0, sizeof *p->head << bits);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static inline uint32_t head_of(const phrase_parser *p, const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word * 2654435761u >> p->head_shift;
}

/* Makes a place known as a source. */
static inline void add_source(phrase_parser *p, size_t at) {
    if (!p->copies || at + COPY_LEN_MIN > p->n || at >= PARSE_SOURCES) return;
    uint16_t *head = &p->head[head_of(p, p->src + at)];
    p->chain[at] = *head;
    *head = (uint16_t)(at + 1);
}

/* The longest copy to a place, of at most so many bytes; its length is 0 if there is none. */
static phrase_copy longest_copy(const phrase_parser *p, size_t at, size_t most) {
    phrase_copy longest = {0, 0};
    if (most > COPY_LEN_MAX) most = COPY_LEN_MAX;
    if (most < COPY_LEN_MIN) return longest;
    uint32_t next = p->head[head_of(p, p->src + at)];
    for (int i = 0; i < CHAIN_MAX && next > 0 && longest.len < most; i++) {
        uint32_t from = next - 1, len;
        if (p->src[from + longest.len] == p->src[at + longest.len] &&
            (len = phrase_same_bytes(p->src + from, p->src + at, most)) > longest.len)
            longest = (phrase_copy){from, len};
        next = p->chain[from];
    }
    if (longest.len < COPY_LEN_MIN) longest.len = 0;
    return longest;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static inline uint32_t phrase_cost(const phrase_parser *p, uint32_t context, uint32_t payload) {
    if (!p->d) return p->phrase_cost[payload] + TOKEN_COST;
    const phrase_code *code = &p->d->code[context * p->d->groups + (payload >> 16)];
    return (code->len + ((payload & 0xffff) >= code->shorter)) * PARSE_BIT + TOKEN_COST;
}

static inline uint32_t copy_cost(const phrase_parser *p, uint32_t context, unsigned class) {
    if (!p->d) return p->copy_cost[class] + TOKEN_COST;
    const phrase_dict *d = p->d;
    return d->code[context * d->groups + d->groups - COPY_CODES + class].len * PARSE_BIT +
           TOKEN_COST;
}

static inline uint8_t phrase_class(const phrase_parser *p, uint32_t payload) {
    return p->d ? p->d->class_of[payload >> 16] : 0;
}

static inline uint8_t copies_class(const phrase_parser *p) {
    return p->d ? (uint8_t)p->d->plain : 0;
}

/* ---- the block ------------------------------------------------------------------------------- */

/* Offers a way to a place. */
static void offer(phrase_parser *p, uint32_t at, const parse_node *way) {
    parse_node *node = p->node[at];
    uint32_t states = p->states[at], worst = 0;
    if (states > 0 && way->cost > p->best[at] + STATE_SLACK) return;
    if (at > p->reached) p->reached = at;
    if (way->cost < p->best[at]) {
        p->best[at] = way->cost;
        if (way->cost < p->best[p->ahead]) p->ahead = at;
    }
    for (uint32_t i = 0; i < states; i++) {
        if (node[i].class == way->class) {
            if (way->cost < node[i].cost) node[i] = *way;
            return;
        }
        if (node[i].cost > node[worst].cost) worst = i;
    }
    if (states < (p->d ? PARSE_STATES : 1))
        node[p->states[at]++] = *way;
    else if (way->cost < node[worst].cost)
        node[worst] = *way;
}

static void offer_phrases(phrase_parser *p, uint32_t at, uint32_t len) {
    phrase_found found[PHRASE_LEN_MAX];
    unsigned n =
        phrase_match_all(p->match, bytes_at(p, p->begin + at), p->n - p->begin - at, found);
    for (unsigned i = 0; i < n && at + found[i].len <= len; i++) {
        parse_node way = {.cost = NO_COST, .payload = found[i].payload, .before = (uint16_t)at};
        uint32_t state = 0;
        for (uint32_t s = 0; s < p->states[at]; s++) {
            const parse_node *from = &p->node[at][s];
            uint32_t cost = from->cost + phrase_cost(p, from->class, found[i].payload);
            if (cost >= way.cost) continue;
            way.cost = cost;
            state = s;
        }
        way.from = p->node[at][state].from;
        way.len = p->node[at][state].len;
        way.before_state = (uint8_t)state;
        way.class = phrase_class(p, found[i].payload);
        offer(p, at + found[i].len, &way);
    }
}

/* The same copy as last time, for each way that leads here. */
static void offer_again(phrase_parser *p, uint32_t at, uint32_t len) {
    for (uint32_t s = 0; s < p->states[at]; s++) {
        const parse_node *from = &p->node[at][s];
        if (from->len == 0 || at + from->len > len) continue;
        if (phrase_same_bytes(p->src + from->from, p->src + p->begin + at, from->len) < from->len)
            continue;
        parse_node way = *from;
        way.cost += copy_cost(p, from->class, COPY_AGAIN);
        way.payload = PARSE_COPY + COPY_AGAIN;
        way.before = (uint16_t)at;
        way.before_state = (uint8_t)s;
        way.class = copies_class(p);
        offer(p, at + from->len, &way);
    }
}

static void offer_copies(phrase_parser *p, uint32_t at, uint32_t len) {
    size_t place = p->begin + at;
    phrase_copy copy = longest_copy(p, place, len - at);
    for (uint32_t l = copy.len; l >= COPY_LEN_MIN && l + COPY_SHORTER > copy.len; l--) {
        unsigned class = copy_class(l);
        parse_node way = {.cost = NO_COST,
                          .payload = PARSE_COPY + class,
                          .from = (uint16_t)copy.from,
                          .len = (uint16_t)l,
                          .before = (uint16_t)at,
                          .class = copies_class(p)};
        for (uint32_t s = 0; s < p->states[at]; s++) {
            const parse_node *from = &p->node[at][s];
            uint32_t cost = from->cost + copy_cost(p, from->class, class);
            if (cost >= way.cost) continue;
            way.cost = cost;
            way.before_state = (uint8_t)s;
        }
        way.cost += copy_bits(place, l) * PARSE_BIT;
        offer(p, at + l, &way);
    }
}

/* Goes on to the cheapest place after this one. */
static void look_ahead(phrase_parser *p, uint32_t at) {
    if (p->ahead > at) return;
    p->ahead = at + 1;
    for (uint32_t i = at + 2; i <= p->reached; i++)
        if (p->best[i] < p->best[p->ahead]) p->ahead = i;
}

/* Follows the cheapest way back from the end. */
static void collect(phrase_parser *p, uint32_t end) {
    uint32_t at = end, state = 0;
    for (uint32_t s = 1; s < p->states[end]; s++)
        if (p->node[end][s].cost < p->node[end][state].cost) state = s;
    p->context = p->node[end][state].class;
    p->copy = (phrase_copy){p->node[end][state].from, p->node[end][state].len};
    uint32_t first = PARSE_PLACES;
    while (at > 0) {
        p->token[--first] = (uint16_t)(at * PARSE_STATES + state);
        const parse_node *node = &p->node[at][state];
        at = node->before;
        state = node->before_state;
    }
    p->tokens = PARSE_PLACES - first;
    memmove(p->token, p->token + first, p->tokens * sizeof *p->token);
}

bool parse_next(phrase_parser *p) {
    if (p->tokens > 0) { /* the block before */
        size_t end;
        parse_token(p, p->tokens - 1, &end);
        p->begin = end;
    }
    size_t left = p->n - p->begin;
    if (left == 0) return false;
    uint32_t len = left < PARSE_PLACES ? (uint32_t)left : PARSE_PLACES;
    uint32_t block = left < PARSE_PLACES ? len : PARSE_BLOCK;
    memset(p->states, 0, len + 1);
    memset(p->best, 0xff, (len + 1) * sizeof *p->best);
    p->ahead = 0;
    p->reached = 0;
    parse_node start = {
        .from = (uint16_t)p->copy.from, .len = (uint16_t)p->copy.len, .class = (uint8_t)p->context};
    offer(p, 0, &start);
    for (uint32_t at = 0; at < block; at++) {
        look_ahead(p, at);
        bool given_up = p->states[at] == 0 ||
                        (p->best[p->ahead] != NO_COST && p->best[p->ahead] <= p->best[at]);
        if (!given_up) {
            offer_phrases(p, at, len);
            if (p->copies) {
                offer_again(p, at, len);
                offer_copies(p, at, len);
            }
        }
        add_source(p, p->begin + at);
    }
    uint32_t end = len;
    if (block < len) {
        look_ahead(p, block - 1);
        end = p->ahead;
    }
    for (uint32_t at = block; at < end; at++) add_source(p, p->begin + at);
    collect(p, end);
    return true;
}
