/*
 * phrase_train.c: from samples to a dictionary.
 *
 *      samples, shuffled --+--> learn --> grow phrases  \   lexicon        for the fast parse once
 *                          |              weed out      /                  for each `often`
 *                          |              classes, groups, codes --> dictionary
 *                          +--> test  --> which dictionary is better, and how good is it?
 *
 * A record that comes again teaches nothing new about what records share. If it counted each time,
 * it would be learned whole, and leave no room for what others have in common with it. But the few
 * values of an enumeration are best learned whole. So every 32nd time counts. Where there is room
 * for most of the different records, it is tried as well to learn those whole that come again: then
 * they count twice, for a phrase must stand in two records. That begins with what the first lesson
 * has found: where all that a record says is learned at once, pieces of it are in the place of what
 * records share, and of copies.
 *
 * How often a pair must be seen to become a phrase depends on the data: 2 is best for language,
 * where rare pairs come again, and wherever there is room; 4 where neighbours will be joined; keys
 * full of random digits want phrases that all are frequent. So where the fast parse takes whatever
 * phrase is longest, more and more is asked for, until the test samples, one in 32, which were not
 * learned from, get longer.
 *
 * What the cheapest parse has a use for comes of rounds besides, each of which parses the sample
 * with what the last one left, joins neighbours and weeds out the others:
 *
 *      grow --> round, round --> are copies worth it? --> round, round, round --> weed out until
 *                                As long as there are                             it fits --> codes
 *                                phrases that stand in
 *                                one record alone, nobody
 *                                can tell: they are taken
 *                                where copies will be.
 *
 * That fits a share of the data. Of a small store's many phrases take more memory than they save
 * there, so what is left without them gets codes as well, and whatever takes less with the records.
 */
#include "base/both.h"
#include "base/pace.h"
#include "base/siphash.h"
#include "phrase/phrase_learn.h"

#define SAMPLE_MAX  (16u << 20) /* bytes */
#define TOKENS_MAX  (4u << 20)
#define TEST_SHARE  32
#define AGAIN_EVERY 32 /* of the times that a record comes again, one in so many counts */
/* Tables in which most of so many bytes of records can be learned whole, of which some 24 KB are
 * there anyhow; that is tried where 1 record in so many comes again. */
#define BY_HEART(bytes) ((bytes) / 2 + (24u << 10))
#define REPEATED_SHARE  8
#define OFTEN_RARE      2
#define OFTEN_JOINED    4
#define OFTEN_MORE      16
#define OFTEN_STEP      8
#define OFTEN_MOST      128
#define FREQUENT_BYTES  (3u << 20) /* so much is enough to know frequent phrases by */
/* More rounds, of more bytes, gain little: twelve 0.5% for twice the time. */
#define ROUNDS       5
#define COPIES_ROUND 2 /* before which it is told whether copies are worth it */
#define RENEW_BYTES  (4u << 20)
/* Copies must save 1 in so many bytes: to look for them makes encoding a tenth to a quarter slower.
 * So many bytes to learn from, and to try it on, are enough to know; that these are learned as well
 * makes less of a difference than there being few others. */
#define COPIES_SAVE        80
#define COPIES_LEARN_BYTES (1u << 20)
#define COPIES_TRY_BYTES   (256u << 10)
/* As many classes as the format has room for, beside that of copies: 2-4% fewer bytes for 130-210
 * KB of tables. */
#define CLASSES_MORE (PHRASE_CONTEXTS_MAX - 2)
#define GROUPS_MORE  PHRASE_GROUPS_MAX
/* Dictionaries of more frequent phrases are smaller; they may be worse by this part. */
#define SMALLER_IS_WORTH 200
/* Every so many bytes of sample, a pair must be seen once more: the number of phrases then stays at
 * about the most that there may be. */
#define BYTES_FOR_ONCE_MORE (6u << 20)
#define RATIO_ONE           1000000u
#define PHRASES_MOST        (PHRASE_MAX - COPY_CODES)
/* Bits of the sample for each byte of a phrase's memory: fewer save none that would be kept anyhow
 * (WORTH_KEEPING, of a dozen bytes and more). */
#define LEAST_TRIED 1
/* Of all bytes, in units of 1 / RATIO_ONE. */
#define HARDLY_SMALLER (RATIO_ONE / 20 * 19)

typedef struct limits {
    size_t max_bytes;
    double stored; /* bytes of records */
    uint32_t classes, groups;
    bool try_more; /* of classes */
    bool cheapest; /* how records will be parsed */
} limits;

/* What the tables of contexts and groups may take of the whole, found by trying. */
static limits limits_for(size_t max_bytes, uint64_t stored, bool cheapest) {
    double bytes = (double)stored;
    max_bytes = mem_class_near(max_bytes);
    if (max_bytes < 100u << 10) return (limits){max_bytes, bytes, 4, 48, false, cheapest};
    if (max_bytes < 600u << 10) return (limits){max_bytes, bytes, 8, 80, false, cheapest};
    return (limits){max_bytes, bytes, 16, 160, cheapest, cheapest};
}

/* ---- samples --------------------------------------------------------------------------------- */

static void shuffle(phrase_sample *list, uint32_t n) {
    uint64_t state = 1;
    for (uint32_t i = n; i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t j = (uint32_t)((state >> 32) * i >> 32);
        phrase_sample swap = list[i - 1];
        list[i - 1] = list[j];
        list[j] = swap;
    }
}

/* Cuts the list where it reaches SAMPLE_MAX bytes. */
static sample_set cut(phrase_sample *list, uint32_t n) {
    sample_set set = {.list = list};
    for (; set.n < n && set.bytes < SAMPLE_MAX; set.n++) {
        if (list[set.n].len > SAMPLE_MAX - set.bytes)
            list[set.n].len = (uint32_t)(SAMPLE_MAX - set.bytes);
        set.bytes += list[set.n].len;
    }
    return set;
}

/* Takes one part in `share` off the front of a set. */
static sample_set split(sample_set *set, uint32_t share) {
    sample_set front = {.list = set->list, .n = set->n / share};
    for (uint32_t i = 0; i < front.n; i++) front.bytes += front.list[i].len;
    set->list += front.n;
    set->n -= front.n;
    set->bytes -= front.bytes;
    return front;
}

/* A cell of a table of records by their hash. */
typedef struct seen {
    uint64_t hash; /* 0: empty */
    uint32_t at, times;
} seen;

/* That of a record, or the empty one where it would go. */
static seen *find_seen(seen *cells, size_t count, phrase_sample sample) {
    uint64_t hash = siphash13(sample.data, sample.len, phrase_secret) | 1;
    size_t at = hash >> 1 & (count - 1);
    while (cells[at].hash != 0 && cells[at].hash != hash) at = (at + 1) & (count - 1);
    cells[at].hash = hash;
    return &cells[at];
}

/* Leaves each record of a set, whose list is `list`, once. Writes how often it counts: the first
 * time of every AGAIN_EVERY that it comes, or the first two. False: out of memory. */
static bool count_repeated(const mem *m, phrase_sample *list, sample_set *set, uint32_t *once,
                           uint32_t *twice) {
    size_t count = 2;
    while (count < 2 * (size_t)set->n) count *= 2;
    seen *cells = m->alloc(count * sizeof *cells);
    if (!cells) return false;
    memset(cells, 0, count * sizeof *cells);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        pace_keep();
        seen *cell = find_seen(cells, count, list[i]);
        if (cell->times == 0) {
            once[kept] = twice[kept] = 0;
            list[kept] = list[i];
            cell->at = kept++;
        }
        uint32_t before = cell->times++ % AGAIN_EVERY;
        once[cell->at] += before < 1;
        twice[cell->at] += before < 2;
    }
    m->free(cells);
    set->n = kept;
    return true;
}

/* What there is to learn from, where repeated records count once or twice, and to try it on. */
typedef struct sample_sets {
    phrase_sample *list; /* of all */
    sample_set once, twice, test;
    uint32_t *times; /* of once and twice */
    bool repeated;   /* enough of them come again */
} sample_sets;

/* A set whose records count so many times. */
static sample_set counted(sample_set set, const uint32_t *times) {
    set.times = times;
    set.bytes = 0;
    for (uint32_t i = 0; i < set.n; i++) set.bytes += (size_t)times[i] * set.list[i].len;
    return set;
}

static void free_samples(const mem *m, sample_sets *s) {
    if (s->times) m->free(s->times);
    if (s->list) m->free(s->list);
}

/* False: out of memory; what is taken is to be freed anyhow. */
static bool take_samples(const mem *m, const phrase_sample *samples, size_t n, sample_sets *s) {
    if (n > UINT32_MAX) n = UINT32_MAX;
    s->list = m->alloc(n * sizeof *s->list + 1);
    if (!s->list) return false;
    if (n > 0) memcpy(s->list, samples, n * sizeof *s->list);
    shuffle(s->list, (uint32_t)n);
    sample_set all = cut(s->list, (uint32_t)n);
    if (all.n >= TEST_SHARE) s->test = split(&all, TEST_SHARE);
    uint32_t count = all.n;
    s->times = m->alloc(2 * (size_t)count * sizeof *s->times + 1);
    if (!s->times) return false;
    if (!count_repeated(m, s->list + s->test.n, &all, s->times, s->times + count)) return false;
    s->once = counted(all, s->times);
    s->twice = counted(all, s->times + count);
    s->repeated = all.n < count && count - all.n >= count / REPEATED_SHARE;
    if (s->test.n == 0) s->test = s->once;
    return true;
}

/* The front of a set: at least so many bytes of different records, if there are. */
static sample_set front(const sample_set *set, size_t bytes) {
    sample_set some = {.list = set->list, .times = set->times};
    for (size_t different = 0; some.n < set->n && different < bytes; some.n++) {
        uint32_t len = set->list[some.n].len;
        different += len;
        some.bytes += (size_t)sample_times(set, some.n) * len;
    }
    return some;
}

/* ---- learning -------------------------------------------------------------------------------- */

static size_t size_of(const lexicon *x, uint32_t n, const limits *limits) {
    return phrase_size(x->mem, x->text, x->at, x->len, n, limits->groups, limits->classes + 1,
                       lexicon_copies(x));
}

/* Keeps `most` of the phrases, those worth more than `least` (lexicon_keep). False: out of memory.
 */
static bool weed_out(lexicon *x, const sample_set *set, uint32_t most, float least) {
    lexicon_parse(x, set, NULL, 0);
    lexicon_regret(x, set);
    return lexicon_keep(x, most, least);
}

/* Weeds out until the dictionary fits. False: out of memory. */
static bool shrink(lexicon *x, const sample_set *set, const limits *limits) {
    uint32_t most = PHRASES_MOST;
    size_t least = size_of(x, 256, limits); /* the single bytes alone */
    while (least > 0 && weed_out(x, set, most, 0)) {
        size_t bytes = size_of(x, x->n, limits);
        if (bytes == 0) return false;
        if (bytes <= limits->max_bytes || x->n == 256) return true;
        double room = limits->max_bytes > least ? (double)(limits->max_bytes - least) : 0;
        most = 256 + (uint32_t)((x->n - 256) * 0.99 * room / (double)(bytes - least));
        if (most < x->n / 3 * 2) most = x->n / 3 * 2; /* what is left is worth more each time */
    }
    return false;
}

/* Encoded / raw bytes of a set, in units of 1 / RATIO_ONE; a record that does not get smaller by
 * enough counts as it is. False: out of memory. */
static bool rate(const phrase_dict *d, const sample_set *set, bool cheapest, uint32_t *ratio) {
    uint32_t longest = 1;
    uint64_t encoded = 0;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->list[i].len > longest) longest = set->list[i].len;
    uint8_t *out = d->mem->alloc(longest);
    void *scratch = d->mem->alloc(cheapest ? phrase_scratch_bytes() : 1);
    for (uint32_t i = 0; out && scratch && i < set->n; i++) {
        pace_keep();
        const void *data = set->list[i].data;
        uint32_t len = set->list[i].len;
        size_t most = phrase_most(len);
        size_t got = cheapest ? phrase_encode_cheapest(d, scratch, data, len, out, most)
                              : phrase_encode(d, data, len, out, most);
        encoded += (got == PHRASE_NO_ROOM ? len : got) * sample_times(set, i);
    }
    *ratio = set->bytes == 0 ? RATIO_ONE : (uint32_t)(encoded * RATIO_ONE / set->bytes);
    bool done = out && scratch;
    if (out) d->mem->free(out);
    if (scratch) d->mem->free(scratch);
    return done;
}

/* NULL: out of memory. */
static phrase_dict *code(lexicon *x, token_list tokens, const limits *limits) {
    phrase_dict *d = NULL;
    uint8_t *class_of = x->mem->alloc(x->n + COPY_CODES);
    if (class_of && phrase_classify(x, tokens, limits->classes, class_of))
        d = phrase_code_groups(x, tokens, limits->classes, class_of, limits->groups);
    if (class_of) x->mem->free(class_of);
    return d;
}

/* What a dictionary and the records that are stored take together, if these are like the test
 * samples, bytes. Negative: out of memory. */
static double total(const phrase_dict *d, const sample_set *test, double stored) {
    uint32_t ratio;
    if (!rate(d, test, true, &ratio)) return -1;
    return (double)phrase_bytes(d) + stored * ratio / RATIO_ONE;
}

/* `other` instead of `d`, either of which may be NULL, if it fits and it and the records take less
 * together. NULL: out of memory. */
static phrase_dict *that_saves_more(phrase_dict *d, phrase_dict *other, const limits *limits,
                                    const sample_set *test) {
    double with = d && other ? total(other, test, limits->stored) : -1;
    double without = d && other ? total(d, test, limits->stored) : -1;
    bool better = with < without && phrase_bytes(other) <= limits->max_bytes;
    phrase_dict *best = with < 0 || without < 0 ? NULL : better ? other : d;
    if (d && d != best) phrase_free(d);
    if (other && other != best) phrase_free(other);
    return best;
}

/* A dictionary of the lexicon's phrases; NULL: out of memory. `test`: to try more classes on, NULL:
 * they are not tried. */
static phrase_dict *make_dict(lexicon *x, const sample_set *set, const limits *limits,
                              const sample_set *test) {
    size_t n = lexicon_tokens_max(set);
    if (n > TOKENS_MAX) n = TOKENS_MAX;
    uint32_t *list = x->mem->alloc(n * sizeof *list);
    if (!list) return NULL;
    size_t got = lexicon_parse(x, set, list, n);
    token_list tokens = {list, got < n ? got : n};
    for (size_t i = 0; i < tokens.n; i++)
        if (list[i] >= LEXICON_COPY && list[i] != LEXICON_START)
            list[i] = x->n + (list[i] - LEXICON_COPY);
    for (uint32_t i = 0; i < lexicon_copies(x); i++) x->count[x->n + i] = x->copy_count[i];
    phrase_dict *d = code(x, tokens, limits);
    if (d && limits->try_more && test) {
        struct limits more = *limits;
        more.classes = CLASSES_MORE;
        more.groups = GROUPS_MORE;
        d = that_saves_more(d, code(x, tokens, &more), limits, test);
    }
    x->mem->free(list);
    return d;
}

/* What a dictionary's cheapest parse makes of a set without copies, if with them it is `with`. */
static bool rate_without_copies(phrase_dict *d, const sample_set *set, uint32_t *without) {
    uint32_t copies = d->copies;
    d->copies = 0;
    bool rated = rate(d, set, true, without);
    d->copies = copies;
    return rated;
}

/* Gives up copies if they are not worth it, as a dictionary of a part of the set tells. False: out
 * of memory. */
static bool judge_copies(lexicon *x, const sample_set *set, const limits *limits) {
    sample_set learned = front(set, COPIES_LEARN_BYTES), tried = front(set, COPIES_TRY_BYTES);
    uint32_t with, without, copy_count[COPY_CODES];
    uint32_t *count = x->mem->alloc(x->n * sizeof *count);
    if (!count) return false;
    memcpy(count, x->count, x->n * sizeof *count);
    memcpy(copy_count, x->copy_count, sizeof copy_count);
    phrase_dict *d = make_dict(x, &learned, limits, NULL);
    bool done = d && rate(d, &tried, true, &with) && rate_without_copies(d, &tried, &without);
    if (done) x->copies = with < without - without / COPIES_SAVE;
    if (d) phrase_free(d);
    memcpy(x->copy_count, copy_count, sizeof copy_count);
    memcpy(x->count, count, x->n * sizeof *count);
    x->mem->free(count);
    return done;
}

/* What to learn, and what comes of it. */
typedef struct lesson {
    const mem *m;
    const sample_set *set, *test;
    const limits *limits;
    uint32_t often;
    bool by_heart; /* it goes on from a lesson of what the records share */
    lexicon x;
    phrase_dict *dict; /* NULL: out of memory */
} lesson;

/* Makes of the phrases that have been grown those that the cheapest parse has a use for. False: out
 * of memory. */
static bool refine(lesson *l) {
    sample_set some = front(l->set, RENEW_BYTES);
    lexicon_count(&l->x, &some);
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool judge = round == COPIES_ROUND && !l->by_heart;
        if (judge && !judge_copies(&l->x, &some, l->limits)) return false;
        if (!lexicon_renew(&l->x, &some, PHRASES_MOST)) return false;
    }
    return true;
}

static bool begin(lesson *l) {
    return lexicon_init(&l->x, l->m, l->set->bytes, l->limits->cheapest);
}

/* False: out of memory. */
static bool find_phrases(lesson *l) {
    return lexicon_grow(&l->x, l->set, l->often) && (!l->limits->cheapest || refine(l)) &&
           shrink(&l->x, l->set, l->limits);
}

/* A dictionary of fewer phrases (weed_out) instead of `d`, if that saves more. NULL: out of memory.
 */
static phrase_dict *try_fewer(lesson *l, phrase_dict *d, uint32_t most, float least) {
    bool weeded = weed_out(&l->x, l->set, most, least);
    phrase_dict *fewer = weeded ? make_dict(&l->x, l->set, l->limits, l->test) : NULL;
    return that_saves_more(d, fewer, l->limits, l->test);
}

/* Where little is stored, a dictionary without the phrases that take more memory than they save of
 * it is tried as well, and where hardly anything gets smaller one without any. NULL: out of memory.
 */
static phrase_dict *try_leaner(lesson *l, phrase_dict *d) {
    double stored = l->limits->stored, least = stored > 0 ? 8 * (double)l->x.parsed / stored : 0;
    uint32_t ratio = 0;
    if (!d || !l->limits->cheapest || least < LEAST_TRIED) return d;
    d = try_fewer(l, d, PHRASES_MOST, (float)least);
    if (d && rate(d, l->test, true, &ratio) && ratio > HARDLY_SMALLER) d = try_fewer(l, d, 256, 0);
    return d;
}

/* Makes a dictionary of the phrases that have been found, if they have, and frees all else. */
static void end(lesson *l, bool found) {
    l->dict = found ? make_dict(&l->x, l->set, l->limits, l->test) : NULL;
    l->dict = try_leaner(l, l->dict);
    lexicon_free(&l->x);
    if (!l->dict || rate(l->dict, l->test, false, &l->dict->ratio)) return;
    phrase_free(l->dict);
    l->dict = NULL;
}

static void learn(lesson *l) {
    end(l, begin(l) && find_phrases(l));
}

/* Of two lessons, on two threads: the first's phrases have been found, with which the second, by
 * heart, has begun. */
static void finish(void *lesson_begun) {
    lesson *l = lesson_begun;
    end(l, !l->by_heart || find_phrases(l));
}

/* Asks for more frequent pairs as long as the dictionary is about as good as the best, which may be
 * NULL. NULL: out of memory. */
static phrase_dict *try_frequent(const lesson *first) {
    sample_set some = front(first->set, FREQUENT_BYTES);
    phrase_dict *best = first->dict;
    lesson l = *first;
    l.set = &some;
    for (l.often = OFTEN_MORE; best && l.often <= OFTEN_MOST; l.often *= OFTEN_STEP) {
        learn(&l);
        bool worse = l.dict && l.dict->ratio > best->ratio + best->ratio / SMALLER_IS_WORTH;
        phrase_free(worse ? l.dict : best);
        if (worse) break;
        best = l.dict; /* NULL: out of memory */
    }
    return best;
}

/* Learns what different records share, and, where that makes less of them, all that those are which
 * come again. NULL: out of memory. */
static phrase_dict *learn_by_heart(const lesson *l, const sample_set *twice) {
    lesson shared = *l, whole = *l;
    whole.set = twice;
    whole.by_heart = true;
    bool found = begin(&shared) && find_phrases(&shared);
    if (!found || !begin(&whole)) {
        lexicon_free(&shared.x);
        lexicon_free(&whole.x);
        return NULL;
    }
    lexicon_take(&whole.x, &shared.x);
    run_both(finish, &shared, &whole);
    return that_saves_more(shared.dict, whole.dict, l->limits, l->test);
}

/* NULL: out of memory. */
static phrase_dict *learn_from(const mem *m, const sample_sets *s, const limits *limits) {
    bool roomy = limits->max_bytes >= BY_HEART(s->once.bytes);
    lesson l = {.m = m, .set = &s->once, .test = &s->test, .limits = limits};
    l.often = limits->cheapest && !roomy ? OFTEN_JOINED : OFTEN_RARE;
    l.often += (uint32_t)(s->once.bytes / BYTES_FOR_ONCE_MORE);
    if (limits->cheapest && roomy && s->repeated) return learn_by_heart(&l, &s->twice);
    learn(&l);
    return limits->cheapest ? l.dict : try_frequent(&l);
}

bool phrase_rate(phrase_dict *d, phrase_sample *samples, size_t n) {
    sample_set set = {.list = samples, .n = (uint32_t)n};
    for (uint32_t i = 0; i < set.n; i++) set.bytes += samples[i].len;
    return set.bytes == 0 || rate(d, &set, false, &d->ratio);
}

phrase_dict *phrase_train(const mem *m, const phrase_sample *samples, size_t n, size_t max_bytes,
                          uint64_t stored, bool cheapest) {
    limits limits = limits_for(max_bytes, stored, cheapest);
    sample_sets s = {0};
    phrase_dict *d = NULL;
    if (take_samples(m, samples, n, &s)) d = learn_from(m, &s, &limits);
    free_samples(m, &s);
    return d;
}

bool phrase_repeated(const mem *m, const phrase_sample *samples, size_t n, bool *repeated) {
    sample_sets s = {0};
    bool done = take_samples(m, samples, n, &s);
    *repeated = s.repeated;
    free_samples(m, &s);
    return done;
}
