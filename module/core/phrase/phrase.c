/*
 * phrase.c: a dictionary as an object: how it is built of its phrases and code lengths, saved,
 * loaded and freed.
 *
 * Saved, all numbers little-endian ("v": 7 bits a byte, lowest first, the high bit says that more
 * follow):
 *
 *      [0xc9 'p' 'h' version][ratio v][n v][groups v][contexts v]
 *      groups times               [size v][class, 1 byte]
 *      contexts x groups times    [code length, 1 byte][how many have it, the rest 1 more: v]
 *      n - copies times, by rank  [length, 1 byte][bytes ...]
 *
 * Version 2 has copies, see phrase_copy.h; version 1, which older programs read as well, has none.
 *
 * In memory it is one block: the struct and, each aligned to 8 bytes, its tables.
 */
#include "phrase/phrase_inside.h"

#include "base/sort.h"

static const uint8_t saved_magic[3] = {0xc9, 'p', 'h'};
#define WITHOUT_COPIES 1 /* versions */
#define WITH_COPIES    2

/* Of a code's bits, so many tell its segment mostly: a decoder's tables are to be small where there
 * are few phrases, and fast where there are many. */
#define FIRST_BITS(n) ((n) < 4096 ? 8u : (n) < 8192 ? 9u : 10u)

/* Fewer copies among the tokens than this share are rare. */
#define RARE_COPIES(tokens) ((tokens) / 64)

#define CODE_SPACE (1u << PHRASE_CODE_MAX)
#define END_SPACE  (1u << (PHRASE_CODE_MAX - PHRASE_END_BITS))

/* ---- checks ---------------------------------------------------------------------------------- */

/* Do the codes of a context fill the space below the end's, no more and no less? */
static bool context_sane(const phrase_plan *plan, uint32_t context) {
    uint64_t space = END_SPACE;
    for (uint32_t g = 0; g < plan->groups; g++) {
        unsigned len = plan->code_len[context * plan->groups + g];
        uint32_t size = plan->group_size[g], shorter = plan->shorter[context * plan->groups + g];
        if (shorter < 1 || shorter > size || len < 1) return false;
        if (len + (shorter < size) > PHRASE_CODE_MAX) return false;
        space += (uint64_t)shorter << (PHRASE_CODE_MAX - len);
        space += ((uint64_t)(size - shorter) << (PHRASE_CODE_MAX - len)) / 2;
    }
    return space == CODE_SPACE;
}

/* Phrases that have a text. */
static uint32_t texts(const phrase_plan *plan) {
    return plan->n - plan->copies;
}

/* Classes of theirs. */
static uint32_t plain_classes(const phrase_plan *plan) {
    return plan->contexts - 1 - (plan->copies > 0);
}

/* Are the last groups the copies, one each, and no others of their class? */
static bool groups_sane(const phrase_plan *plan) {
    uint64_t n = 0;
    for (uint32_t g = 0; g < plan->groups; g++) {
        bool copy = g >= plan->groups - plan->copies;
        uint32_t size = plan->group_size[g], class = plan->class_of[g], plain = plain_classes(plan);
        if (size < 1 || (copy ? size != 1 || class != plain : class >= plain)) return false;
        n += size;
    }
    return n == plan->n;
}

static bool plan_sane(const phrase_plan *plan) {
    if (plan->n < 256 + plan->copies || plan->n > PHRASE_MAX) return false;
    if (plan->groups < 1 + plan->copies || plan->groups > PHRASE_GROUPS_MAX) return false;
    if (plan->contexts < 2 || plan->contexts > PHRASE_CONTEXTS_MAX) return false;
    if (plain_classes(plan) < 1 || !groups_sane(plan)) return false;
    for (uint32_t i = 0; i < texts(plan); i++)
        if (plan->len[i] < 1 || plan->len[i] > PHRASE_LEN_MAX) return false;
    for (uint32_t c = 0; c < plan->contexts; c++)
        if (!context_sane(plan, c)) return false;
    return true;
}

/* ---- phrases in alphabetical order ----------------------------------------------------------- */

static int compare(const phrase_plan *plan, uint32_t a, uint32_t b) {
    unsigned len_a = plan->len[a], len_b = plan->len[b];
    int order = memcmp(plan->text[a], plan->text[b], len_a < len_b ? len_a : len_b);
    return order != 0 ? order : (int)len_a - (int)len_b;
}

static bool comes_before(const void *plan, uint32_t a, uint32_t b) {
    return compare(plan, a, b) < 0;
}

/* The first bytes as a number that is the smaller the earlier they come; zeros behind a short
 * phrase. */
static uint64_t head_of(const phrase_plan *plan, uint32_t i) {
    uint64_t head = 0;
    memcpy(&head, plan->text[i], plan->len[i] < sizeof head ? plan->len[i] : sizeof head);
    return __builtin_bswap64(head);
}

/* Of those in order[from .. to), whose heads are the same, most have no other. */
static void sort_alike(const phrase_plan *plan, uint32_t *order, uint32_t from, uint32_t to) {
    if (to - from > 1) sort_by(order + from, to - from, comes_before, plan);
}

/* By their heads, which lie side by side, so that few texts have to be looked at. False: out of
 * memory. */
static bool sort(const phrase_plan *plan, uint32_t *order) {
    uint32_t n = texts(plan), from = 0;
    sort_word *words = mem_libc.alloc(2 * n * sizeof *words);
    if (!words) return false;
    for (uint32_t i = 0; i < n; i++) words[i] = (sort_word){head_of(plan, i), i};
    const sort_word *sorted = sort_words(words, words + n, n);
    for (uint32_t i = 0; i < n; i++) order[i] = sorted[i].number;
    for (uint32_t i = 1; i <= n; i++) {
        if (i < n && sorted[i].word == sorted[from].word) continue;
        sort_alike(plan, order, from, i);
        from = i;
    }
    mem_libc.free(words);
    return true;
}

static bool begins(const phrase_plan *plan, uint32_t a, uint32_t b) {
    return plan->len[a] <= plan->len[b] && memcmp(plan->text[a], plan->text[b], plan->len[a]) == 0;
}

/* Markers (see phrase_match.h) that a phrase needs and the one before it in the order does not. */
static uint32_t new_markers(const phrase_plan *plan, uint32_t before, uint32_t i) {
    unsigned bytes = (plan->len[i] - 1u) / 8 * 8, same = 0;
    while (same + 8 <= bytes && same + 8 < plan->len[before] &&
           memcmp(plan->text[before] + same, plan->text[i] + same, 8) == 0)
        same += 8;
    return (bytes - same) / 8;
}

typedef struct needs {
    uint32_t *host; /* the phrase in whose text a phrase lies */
    uint32_t text_len, markers;
} needs;

/* Looks at phrases in alphabetical order, in which a phrase is followed by those that it begins.
 * False: one is there twice, or a single byte is missing. */
static bool measure(const phrase_plan *plan, const uint32_t *order, needs *needs) {
    uint32_t singles = plan->len[order[0]] == 1;
    needs->markers = (plan->len[order[0]] - 1u) / 8;
    for (uint32_t i = 1; i < texts(plan); i++) {
        if (compare(plan, order[i - 1], order[i]) == 0) return false;
        singles += plan->len[order[i]] == 1;
        needs->markers += new_markers(plan, order[i - 1], order[i]);
    }
    needs->text_len = 0;
    for (uint32_t i = texts(plan); i-- > 0;) {
        bool shares = i + 1 < texts(plan) && begins(plan, order[i], order[i + 1]);
        needs->host[order[i]] = shares ? needs->host[order[i + 1]] : order[i];
        if (!shares) needs->text_len += plan->len[order[i]];
    }
    return singles == 256;
}

/* ---- building -------------------------------------------------------------------------------- */

void phrase_set_secret(const uint64_t secret[2]) {
    phrase_secret[0] = secret[0] | 1;
    phrase_secret[1] = secret[1];
}

/* The next table's place in the block, if there is one yet. */
static void *take(uint8_t *block, size_t *at, size_t bytes) {
    void *place = block ? block + *at : NULL;
    *at += (bytes + 7) & ~(size_t)7;
    return place;
}

/* Sets the tables' places after the struct and returns the bytes of all. */
static size_t lay_out(phrase_dict *d, uint8_t *block) {
    size_t at = 0, codes = (size_t)d->contexts * d->groups;
    take(block, &at, sizeof *d);
    d->match.cells = take(block, &at, d->match.cell_count * sizeof *d->match.cells);
    d->entry = take(block, &at, (d->n - d->copies) * sizeof *d->entry);
    d->code = take(block, &at, codes * sizeof *d->code);
    d->segment = take(block, &at, (2 * codes + d->contexts) * sizeof *d->segment);
    d->first = take(block, &at, d->contexts * sizeof *d->first << d->first_bits);
    d->match.filter = take(block, &at, (size_t)1 << (64 - d->match.filter_shift));
    d->text = take(block, &at, d->text_len + PHRASE_TEXT_PAD);
    d->match.text = d->text;
    return at;
}

static unsigned filter_shift(uint32_t n) {
    unsigned bits = 10;
    while (bits < 18 && (1u << bits) < 2 * n) bits++;
    return 64 - bits;
}

/* Copies the phrases, frequent ones first so that they share cache lines. */
static void fill_text(phrase_dict *d, const phrase_plan *plan, const uint32_t *host) {
    uint32_t end = 0;
    memset(d->entry, 0xff, texts(plan) * sizeof *d->entry);
    for (uint32_t i = 0; i < texts(plan); i++) {
        uint32_t h = host[i];
        if (d->entry[h] == UINT32_MAX) {
            memcpy(d->text + end, plan->text[h], plan->len[h]);
            d->entry[h] = end << 6 | (plan->len[h] - 1u);
            end += plan->len[h];
        }
        d->entry[i] = (d->entry[h] & ~63u) | (plan->len[i] - 1u);
    }
    memset(d->text + end, 0, PHRASE_TEXT_PAD);
}

static void add_group(phrase_dict *d, uint32_t g, uint32_t rank) {
    for (uint32_t place = 0; place < d->group_size[g]; place++, rank++) {
        unsigned len = (d->entry[rank] & 63) + 1;
        uint32_t offset = d->entry[rank] >> 6, payload = g << 16 | place;
        if (len == 1)
            d->match.single[d->text[offset]] = payload;
        else
            phrase_match_add(&d->match, offset, len, payload);
    }
}

/* Adds the phrases with the shortest codes first: what comes first lies where it is looked for. */
static void fill_matcher(phrase_dict *d) {
    memset(d->match.cells, 0, d->match.cell_count * sizeof *d->match.cells);
    memset(d->match.filter, 0, (size_t)1 << (64 - d->match.filter_shift));
    for (unsigned len = 1; len <= PHRASE_CODE_MAX; len++) {
        uint32_t rank = 0;
        for (uint32_t g = 0; g < d->groups - d->copies; rank += d->group_size[g++]) {
            unsigned shortest = PHRASE_CODE_MAX;
            for (uint32_t c = 0; c < d->contexts; c++)
                if (d->code[c * d->groups + g].len < shortest)
                    shortest = d->code[c * d->groups + g].len;
            if (shortest == len) add_group(d, g, rank);
        }
    }
}

/* Gives the codes of a context, shortest first, those of a length by rank. */
static void fill_codes(phrase_dict *d, const phrase_plan *plan, uint32_t context) {
    phrase_code *code = d->code + context * d->groups;
    phrase_segment *segment = d->segment + context * (2 * d->groups + 1);
    uint32_t next = 0;
    for (unsigned len = 1; len <= PHRASE_CODE_MAX; len++, next <<= 1) {
        uint32_t rank = 0;
        for (uint32_t g = 0; g < d->groups; rank += d->group_size[g++]) {
            uint32_t at = context * d->groups + g, shorter = plan->shorter[at], size;
            bool longer = plan->code_len[at] + 1u == len;
            if (!longer && plan->code_len[at] != len) continue;
            if (longer) {
                code[g].code_longer = (next - shorter) & (CODE_SPACE - 1);
                size = d->group_size[g] - shorter;
            } else {
                code[g].code = next;
                code[g].code_longer = 0;
                code[g].len = len;
                code[g].class = d->class_of[g];
                code[g].shorter = shorter;
                size = shorter;
            }
            if (size == 0) continue;
            *segment++ = (phrase_segment){(next + size) << (PHRASE_CODE_MAX - len),
                                          (uint16_t)(rank + (longer ? shorter : 0) - next),
                                          (uint8_t)len, d->class_of[g]};
            next += size;
        }
    }
    *segment = (phrase_segment){.limit = CODE_SPACE, .class = PHRASE_NO_CLASS};
}

static void fill_first(phrase_dict *d, uint32_t context) {
    const phrase_segment *segment = d->segment + context * (2 * d->groups + 1);
    phrase_first *first = d->first + ((size_t)context << d->first_bits);
    unsigned shift = PHRASE_CODE_MAX - d->first_bits;
    uint32_t s = 0;
    for (uint32_t i = 0; i < 1u << d->first_bits; i++) {
        while (segment[s].limit <= i << shift) s++;
        bool sure = segment[s].len > 0 && segment[s].limit >= (i + 1) << shift;
        first[i] = sure ? (phrase_first){segment[s].rank, segment[s].class, segment[s].len}
                        : (phrase_first){(uint16_t)s, PHRASE_NO_CLASS, 0};
    }
}

/* Whether few tokens are copies: what is frequent has much of the space of codes. In the mean of
 * the classes of phrases with a text, which are not all as frequent. */
static bool are_copies_rare(const phrase_dict *d) {
    uint64_t space = 0;
    for (uint32_t c = 0; c < d->plain; c++)
        for (uint32_t g = d->groups - d->copies; g < d->groups; g++)
            space += CODE_SPACE >> d->code[c * d->groups + g].len;
    return space < d->plain * (uint64_t)RARE_COPIES(CODE_SPACE);
}

/* A dictionary without its tables. */
static phrase_dict outline(const mem *m, const phrase_plan *plan, const needs *needs) {
    phrase_dict d = {.mem = m,
                     .ratio = plan->ratio,
                     .n = plan->n,
                     .groups = plan->groups,
                     .contexts = plan->contexts,
                     .copies = plan->copies,
                     .plain = plain_classes(plan),
                     .text_len = needs->text_len};
    d.match.cell_count = (texts(plan) - 256 + needs->markers) * 3 / 2 + 8;
    d.match.filter_shift = filter_shift(texts(plan));
    memcpy(d.match.secret, phrase_secret, sizeof d.match.secret);
    d.first_bits = FIRST_BITS(plan->n);
    return d;
}

static phrase_dict *build(const mem *m, const phrase_plan *plan, const needs *needs) {
    phrase_dict d = outline(m, plan, needs);
    uint8_t *block = m->alloc(lay_out(&d, NULL));
    if (!block) return NULL;
    lay_out(&d, block);
    memcpy(d.group_size, plan->group_size, d.groups * sizeof *d.group_size);
    memcpy(d.class_of, plan->class_of, d.groups);
    fill_text(&d, plan, needs->host);
    for (uint32_t c = 0; c < d.contexts; c++) {
        fill_codes(&d, plan, c);
        fill_first(&d, c);
    }
    fill_matcher(&d);
    d.copies_rare = are_copies_rare(&d);
    memcpy(block, &d, sizeof d);
    return (phrase_dict *)(void *)block;
}

/* What building and loading need for a moment comes from libc: it is more than what stays, and
 * would count against a server's maxmemory. */

/* Sorts the phrases and measures what they need; needs->host is to be freed with `order`. False:
 * out of memory (*order is NULL), or the phrases are wrong. */
static bool sort_and_measure(const phrase_plan *plan, uint32_t **order, needs *needs) {
    *order = mem_libc.alloc(2 * texts(plan) * sizeof **order);
    if (!*order) return false;
    needs->host = *order + texts(plan);
    return sort(plan, *order) && measure(plan, *order, needs);
}

phrase_dict *phrase_build(const mem *m, const phrase_plan *plan) {
    uint32_t *order = NULL;
    needs needs;
    phrase_dict *d = NULL;
    if (plan_sane(plan) && sort_and_measure(plan, &order, &needs)) d = build(m, plan, &needs);
    if (order) mem_libc.free(order);
    return d;
}

size_t phrase_size(const mem *m, const uint8_t *text, const uint32_t *at, const uint8_t *len,
                   uint32_t n, uint32_t groups, uint32_t contexts, uint32_t copies) {
    uint32_t *order = NULL;
    needs needs;
    size_t bytes = 0;
    const uint8_t **text_of = m->alloc(n * sizeof *text_of);
    phrase_plan plan = {.n = n + copies,
                        .groups = groups + copies,
                        .contexts = contexts + (copies > 0),
                        .copies = copies,
                        .text = text_of,
                        .len = len};
    if (!text_of) return 0;
    for (uint32_t i = 0; i < n; i++) text_of[i] = text + at[i];
    if (sort_and_measure(&plan, &order, &needs)) {
        phrase_dict d = outline(m, &plan, &needs);
        bytes = lay_out(&d, NULL);
    }
    if (order) mem_libc.free(order);
    m->free(text_of);
    return bytes;
}

void phrase_free(phrase_dict *d) {
    d->mem->free(d);
}

void phrase_set_lead(phrase_dict *d, uint32_t lead, unsigned len) {
    d->lead = (uint8_t)lead;
    d->lead_len = (uint8_t)len;
}

size_t phrase_bytes(const phrase_dict *d) {
    return d->mem->usable((void *)d);
}

bool phrase_has_copies(const phrase_dict *d) {
    return d->copies > 0;
}

double phrase_expected_ratio(const phrase_dict *d) {
    return d->ratio / 1e6;
}

/* ---- saving and loading ---------------------------------------------------------------------- */

typedef struct writer {
    uint8_t *at; /* NULL: only count */
    size_t len;
} writer;

static void put(writer *w, const void *bytes, size_t n) {
    if (w->at) memcpy(w->at + w->len, bytes, n);
    w->len += n;
}

static void put_byte(writer *w, uint32_t value) {
    uint8_t byte = (uint8_t)value;
    put(w, &byte, 1);
}

static void put_number(writer *w, uint32_t value) {
    for (; value >= 0x80; value >>= 7) put_byte(w, value | 0x80);
    put_byte(w, value);
}

static void save(const phrase_dict *d, writer *w) {
    put(w, saved_magic, sizeof saved_magic);
    put_byte(w, d->copies ? WITH_COPIES : WITHOUT_COPIES);
    put_number(w, d->ratio);
    put_number(w, d->n);
    put_number(w, d->groups);
    put_number(w, d->contexts);
    for (uint32_t g = 0; g < d->groups; g++) {
        put_number(w, d->group_size[g]);
        put_byte(w, d->class_of[g]);
    }
    for (uint32_t i = 0; i < d->contexts * d->groups; i++) {
        put_byte(w, d->code[i].len);
        put_number(w, d->code[i].shorter);
    }
    for (uint32_t i = 0; i < d->n - d->copies; i++) {
        unsigned len = (d->entry[i] & 63) + 1;
        put_byte(w, len);
        put(w, d->text + (d->entry[i] >> 6), len);
    }
}

size_t phrase_save(const phrase_dict *d, void *dst, size_t cap) {
    writer count = {0}, w = {.at = dst};
    save(d, &count);
    if (count.len <= cap) save(d, &w);
    return count.len;
}

typedef struct reader {
    const uint8_t *at, *end; /* at == NULL: something was wrong */
} reader;

/* The next n bytes, NULL if there are not as many. */
static const uint8_t *get(reader *r, size_t n) {
    const uint8_t *bytes = r->at;
    if (!bytes || (size_t)(r->end - bytes) < n) bytes = NULL;
    r->at = bytes ? bytes + n : NULL;
    return bytes;
}

static uint8_t get_byte(reader *r) {
    const uint8_t *byte = get(r, 1);
    return byte ? *byte : 0;
}

static uint32_t get_number(reader *r) {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 28; shift += 7) {
        uint8_t byte = get_byte(r);
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    r->at = NULL;
    return 0;
}

typedef struct loaded {
    uint32_t group_size[PHRASE_GROUPS_MAX];
    uint8_t class_of[PHRASE_GROUPS_MAX];
    uint8_t code_len[PHRASE_GROUPS_MAX * PHRASE_CONTEXTS_MAX];
    uint32_t shorter[PHRASE_GROUPS_MAX * PHRASE_CONTEXTS_MAX];
    const uint8_t *text[PHRASE_MAX];
    uint8_t len[PHRASE_MAX];
} loaded;

static bool load(reader *r, phrase_plan *plan, loaded *to) {
    const uint8_t *magic = get(r, sizeof saved_magic);
    if (!magic || memcmp(magic, saved_magic, sizeof saved_magic) != 0) return false;
    uint8_t version = get_byte(r);
    if (version != WITH_COPIES && version != WITHOUT_COPIES) return false;
    plan->ratio = get_number(r);
    plan->n = get_number(r);
    plan->groups = get_number(r);
    plan->contexts = get_number(r);
    plan->copies = version == WITH_COPIES ? COPY_CODES : 0;
    if (plan->n > PHRASE_MAX || plan->copies > plan->n || plan->groups > PHRASE_GROUPS_MAX ||
        plan->contexts > PHRASE_CONTEXTS_MAX)
        return false;
    for (uint32_t g = 0; g < plan->groups; g++) {
        to->group_size[g] = get_number(r);
        to->class_of[g] = get_byte(r);
    }
    for (uint32_t i = 0; i < plan->contexts * plan->groups; i++) {
        to->code_len[i] = get_byte(r);
        to->shorter[i] = get_number(r);
    }
    for (uint32_t i = 0; i < texts(plan); i++) {
        to->len[i] = get_byte(r);
        to->text[i] = get(r, to->len[i]);
    }
    return r->at == r->end;
}

phrase_dict *phrase_load(const mem *m, const void *bytes, size_t n) {
    loaded *to = mem_libc.alloc(sizeof *to);
    if (!to) return NULL;
    reader r = {bytes, (const uint8_t *)bytes + n};
    phrase_plan plan = {.text = to->text,
                        .len = to->len,
                        .group_size = to->group_size,
                        .class_of = to->class_of,
                        .code_len = to->code_len,
                        .shorter = to->shorter};
    phrase_dict *d = load(&r, &plan, to) ? phrase_build(m, &plan) : NULL;
    mem_libc.free(to);
    return d;
}
