/*
 * codec_values.c: see codec_values.h.
 *
 * That values look unlike each other does not mean that two dictionaries are better than one: what
 * they have in common is learned twice then, and each has fewer values to learn from. So kinds by
 * their looks (kinds.h) are compared by what encodes them well:
 *
 *      kinds by their looks --> small dictionaries, each encodes all: which are how much alike?
 *                           --> one dictionary for all, one for each kind: for which does that pay?
 *                           --> the others share one with what they are most alike, if they are
 *                               at all, or with each other
 *                           --> all apart, some joined, one for all: what makes the least?
 *
 * From the second on all that there is to learn from is asked: of a part of it, two dictionaries
 * are worse than one much more often.
 *
 * Values that come again and again are learned whole (phrase_train.c), and of those one dictionary
 * holds 2 to 4 MB. So there even kinds that are alike stay apart until dictionaries of all that
 * there is have been compared, and large ones are cut: each has as many phrases as one for all.
 */
#include "codec/codec_values.h"
#include "base/pace.h"
#include "codec/codec_inside.h"

#include <math.h>

/* Kinds are told apart only where dictionaries may take this much. Bytes. */
#define KINDS_ROOM_MIN (256u << 10)
/* Kinds are alike if the dictionary of one makes at most so much more of the other than its own
 * does; so many bytes of each are learned to see, with so much room. */
#define ALIKE         1.2
#define NOT_AT_ALL    2.0
#define ALIKE_LEARNED (256u << 10)
#define ALIKE_ROOM    (512u << 10)
/* Of the values one in so many is not learned, but encoded to compare; so many bytes of a kind. */
#define TEST_EVERY     32
#define TEST_BYTES_MAX (256u << 10)
/* What a kind may be of all values where these come again and again. */
#define PART_BY_HEART 0.25
/* What a dictionary of its own must save of a kind's bytes, and all of them of all bytes: 1 in so
 * many. */
#define WORTH_IT     50
#define ALL_WORTH_IT 200

typedef struct values {
    const mem *mem;
    const phrase_sample *all;
    size_t n, room;      /* for all dictionaries, bytes */
    uint64_t stored;     /* bytes of all that are like these */
    bool repeated;       /* many of them come again */
    bool compares;       /* there are several kinds */
    uint8_t *kind_of;    /* [n] */
    phrase_sample *some; /* [n] */
    double bytes, bytes_of[KINDS_MAX];
    size_t count_of[KINDS_MAX];
    /* What the small dictionary of one kind, as they were learned, makes of the values of another,
     * by what their own does. */
    double unlike[KINDS_MAX][KINDS_MAX];
    uint32_t lanes; /* how many were learned */
    codec_workspace work;
} values;

/* Bytes that values come to: by one dictionary for all, and by one of their kind's own. */
typedef struct outcome {
    double whole, apart;
} outcome;

typedef struct dicts {
    phrase_dict *of[KINDS_MAX];
    outcome outcome[KINDS_MAX]; /* where one for all is compared with them */
} dicts;

static void free_dicts(dicts *d) {
    for (int i = 0; i < KINDS_MAX; i++)
        if (d->of[i]) phrase_free(d->of[i]);
    *d = (dicts){0};
}

/* Without a model all are of one kind. */
static void sort_by_kind(values *v, const kinds_model *model) {
    memset(v->bytes_of, 0, sizeof v->bytes_of);
    memset(v->count_of, 0, sizeof v->count_of);
    for (size_t i = 0; i < v->n; i++) {
        pace_keep();
        uint32_t len = v->all[i].len;
        uint32_t kind = model && len > 0 ? kinds_of(model, v->all[i].data, len) : 0;
        v->kind_of[i] = (uint8_t)kind;
        v->bytes_of[kind] += len;
        v->count_of[kind] += len > 0;
    }
}

/* Whether the value of this number is encoded to compare, and not learned: always the same ones,
 * whatever kinds there are, and some of each even if kinds come in turn. */
static bool is_tested(const values *v, size_t i) {
    return v->compares && (uint32_t)i * 2654435769u / (UINT32_MAX / TEST_EVERY + 1) == 0;
}

/* Takes values of a kind that are to be learned, or of the others, to v->some; returns how many.
 * Where there are many, so many that `most` bytes would come of all the kind's, from all over. */
static size_t take(values *v, uint32_t kind, bool to_test, double most) {
    size_t n = 0;
    double bytes = 0, passed = 0, all = v->bytes_of[kind];
    if (v->compares) all = to_test ? all / TEST_EVERY : all - all / TEST_EVERY;
    for (size_t i = 0; i < v->n; i++) {
        if (v->kind_of[i] != kind || is_tested(v, i) != to_test) continue;
        passed += v->all[i].len;
        if (bytes * all > most * passed) continue;
        pace_keep();
        bytes += v->all[i].len;
        v->some[n++] = v->all[i];
    }
    return n;
}

/* Room for the dictionary of a kind of values in `all` bytes of values, by how much of them it is.
 */
static size_t share(const values *v, uint32_t kind, size_t room, double all) {
    return (size_t)((double)room * (all > 0 ? v->bytes_of[kind] / all : 1));
}

static phrase_dict *learn(values *v, uint32_t kind, size_t room) {
    size_t n = take(v, kind, false, INFINITY);
    double share = v->bytes > 0 ? v->bytes_of[kind] / v->bytes : 0;
    return phrase_train(v->mem, v->some, n, room, (uint64_t)((double)v->stored * share), true);
}

/* Bytes that dictionaries make in the cheapest way of a kind's values, to encoded[0, count), as
 * estimated by some that they have not learned; 0 if there are none. False: out of memory. */
static bool test(values *v, uint32_t kind, phrase_dict *const *dict, uint32_t count,
                 double *encoded) {
    uint8_t *out = workspace_reserve(&v->work, &v->work.moved, CODEC_PHRASE_MAX);
    void *scratch = workspace_reserve(&v->work, &v->work.parser, phrase_scratch_bytes());
    if (!out || !scratch) return false;
    double raw = 0;
    size_t n = take(v, kind, true, TEST_BYTES_MAX);
    for (size_t i = 0; i < n; i++) raw += v->some[i].len;
    for (uint32_t d = 0; d < count; d++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            pace_keep();
            const phrase_sample *s = &v->some[i];
            size_t cap = s->len < CODEC_PHRASE_MAX ? s->len : CODEC_PHRASE_MAX;
            size_t most = phrase_most(cap);
            size_t got = phrase_encode_cheapest(dict[d], scratch, s->data, s->len, out, most);
            sum += (double)(got == PHRASE_NO_ROOM ? s->len : got);
        }
        encoded[d] = raw > 0 ? sum / raw * v->bytes_of[kind] : 0;
    }
    return true;
}

/* ---- which are alike ------------------------------------------------------------------------- */

/* Takes kind b for a. */
static void join(kinds_model *model, uint32_t a, uint32_t b) {
    for (int lane = 0; lane < KINDS_LANES; lane++)
        if (model->kind[lane] == b) model->kind[lane] = (uint8_t)a;
}

/* The kind of the most values among those that are not `done`; KINDS_MAX: there is none. */
static uint32_t most_values(const values *v, const bool done[KINDS_MAX]) {
    uint32_t most = KINDS_MAX;
    for (uint32_t kind = 0; kind < KINDS_MAX; kind++) {
        if (done[kind] || v->count_of[kind] == 0) continue;
        if (most == KINDS_MAX || v->count_of[kind] > v->count_of[most]) most = kind;
    }
    return most;
}

/* Numbers the kinds of which there are values, and their dictionaries, by how many those are: the
 * first has the fewest bits before each. Returns how many kinds they are. */
static uint32_t number(values *v, kinds_model *model, dicts *d) {
    bool done[KINDS_MAX] = {false};
    uint8_t to[KINDS_MAX] = {0};
    dicts was = *d;
    uint32_t kinds = 0;
    *d = (dicts){0};
    for (uint32_t kind; (kind = most_values(v, done)) < KINDS_MAX; kinds++) {
        done[kind] = true;
        to[kind] = (uint8_t)kinds;
        d->of[kinds] = was.of[kind];
    }
    for (int lane = 0; lane < KINDS_LANES; lane++) model->kind[lane] = to[model->kind[lane]];
    return kinds;
}

static bool learn_little(values *v, uint32_t kinds, dicts *d) {
    for (uint32_t kind = 0; kind < kinds; kind++) {
        size_t n = take(v, kind, false, ALIKE_LEARNED);
        d->of[kind] = phrase_train(v->mem, v->some, n, ALIKE_ROOM, v->stored, true);
        if (!d->of[kind]) return false;
    }
    return true;
}

/* Says how much kinds are alike, and joins those that are. False: out of memory. */
static bool join_alike(values *v, kinds_model *model, uint32_t kinds) {
    dicts d = {0};
    bool done = learn_little(v, kinds, &d);
    for (uint32_t a = 0; done && a < kinds; a++) {
        double *unlike = v->unlike[a];
        done = test(v, a, d.of, kinds, unlike);
        double own = unlike[a];
        for (uint32_t b = 0; b < kinds; b++) {
            unlike[b] = own > 0 ? unlike[b] / own : INFINITY;
            if (done && !v->repeated && unlike[b] <= ALIKE)
                join(model, model->kind[a], model->kind[b]);
        }
    }
    free_dicts(&d);
    return done;
}

/* A kind as it was learned that is taken for this one now. */
static uint32_t any_lane(const kinds_model *model, uint32_t kind) {
    uint32_t lane = 0;
    while (model->kind[lane] != kind) lane++;
    return lane;
}

/* The other kind that one is most alike, as they were learned; KINDS_MAX: none at all. */
static uint32_t nearest(const values *v, const kinds_model *model, uint32_t kind) {
    uint32_t best = KINDS_MAX;
    double least = NOT_AT_ALL;
    for (uint32_t a = 0; a < v->lanes; a++)
        for (uint32_t b = 0; b < v->lanes; b++) {
            if (model->kind[a] != kind || model->kind[b] == kind) continue;
            if (v->unlike[a][b] < least) {
                least = v->unlike[a][b];
                best = b;
            }
        }
    return best;
}

/* ---- for which one of its own pays ----------------------------------------------------------- */

static bool is_worth_it(outcome o) {
    return o.apart + o.whole / WORTH_IT < o.whole;
}

/* Bits that will stand before each value of a kind. */
static unsigned lead_bits(const values *v, uint32_t kind) {
    unsigned bits = 1;
    for (uint32_t other = 0; other < KINDS_MAX; other++)
        bits += v->count_of[other] > v->count_of[kind] ||
                (other < kind && v->count_of[other] == v->count_of[kind]);
    return bits;
}

/* A dictionary for a kind, and what it and the one for all make of its values. False: out of
 * memory. */
static bool learn_and_compare(values *v, uint32_t kind, size_t room, phrase_dict *whole, dicts *d) {
    double encoded[2];
    if (!(d->of[kind] = learn(v, kind, room))) return false;
    phrase_set_lead(d->of[kind], 0, lead_bits(v, kind));
    if (!test(v, kind, (phrase_dict *[]){whole, d->of[kind]}, 2, encoded)) return false;
    d->outcome[kind] = (outcome){encoded[0], encoded[1]};
    return true;
}

/* Joins each kind for which a dictionary of its own does not pay with what it is most alike, or
 * with others of these, so that they share one. Says which kinds are no longer what they were. */
static void join_others(values *v, kinds_model *model, uint32_t kinds, const dicts *d,
                        bool changed[KINDS_MAX]) {
    uint32_t lane[KINDS_MAX], to[KINDS_MAX], other = KINDS_MAX;
    for (uint32_t kind = 0; kind < kinds; kind++) {
        bool pays = is_worth_it(d->outcome[kind]);
        lane[kind] = any_lane(model, kind);
        to[kind] = pays ? lane[kind] : nearest(v, model, kind);
        if (!pays && to[kind] < KINDS_MAX && other == KINDS_MAX) other = lane[kind];
    }
    for (uint32_t kind = 0; kind < kinds; kind++) {
        if (to[kind] < KINDS_MAX) continue;
        if (other == KINDS_MAX) other = lane[kind];
        to[kind] = other;
    }
    for (uint32_t kind = 0; kind < kinds; kind++) {
        uint32_t a = model->kind[to[kind]], b = model->kind[lane[kind]];
        if (a == b) continue;
        join(model, a, b);
        changed[a] = changed[b] = true;
    }
    sort_by_kind(v, model);
}

static uint32_t kinds_there(const values *v) {
    uint32_t kinds = 0;
    for (uint32_t kind = 0; kind < KINDS_MAX; kind++) kinds += v->count_of[kind] > 0;
    return kinds;
}

/* What dictionaries of their kinds take and make of all values, by what the one for all does;
 * INFINITY if there is one kind, or they have no room: the smallest that there is may take more
 * than the part of a small kind. */
static double apart_by_whole(const values *v, const phrase_dict *one, const dicts *d) {
    double whole = 0, apart = 0, part = v->stored > 0 ? v->bytes / (double)v->stored : 0;
    size_t bytes = 0;
    for (uint32_t kind = 0; kind < KINDS_MAX; kind++) {
        if (v->count_of[kind] == 0) continue;
        whole += d->outcome[kind].whole;
        apart += d->outcome[kind].apart;
        bytes += phrase_bytes(d->of[kind]);
    }
    bool fit = bytes <= v->room + v->room / 16;
    if (kinds_there(v) == 1 || !fit || whole == 0) return INFINITY;
    return (apart + part * (double)bytes) / (whole + part * (double)phrase_bytes(one));
}

/* Learns those that have changed, in the room that the others' dictionaries leave. False: out of
 * memory. */
static bool learn_changed(values *v, const bool changed[KINDS_MAX], phrase_dict *whole, dicts *d) {
    size_t room = v->room;
    double bytes = 0;
    for (uint32_t kind = 0; kind < KINDS_MAX; kind++) {
        size_t taken = d->of[kind] && !changed[kind] ? phrase_bytes(d->of[kind]) : 0;
        room -= taken < room ? taken : room;
        if (!changed[kind]) continue;
        bytes += v->bytes_of[kind];
        d->of[kind] = NULL;
    }
    for (uint32_t kind = 0; kind < KINDS_MAX; kind++) {
        if (!changed[kind] || v->count_of[kind] == 0) continue;
        if (!learn_and_compare(v, kind, share(v, kind, room, bytes), whole, d)) return false;
    }
    return true;
}

/* Frees the dictionaries of a that are not b's as well, and takes b for it. */
static void replace(dicts *a, const dicts *b) {
    for (int i = 0; i < KINDS_MAX; i++)
        if (a->of[i] && a->of[i] != b->of[i]) phrase_free(a->of[i]);
    *a = *b;
}

/* Leaves in d the dictionaries of all kinds, or of what is left when those for which one of their
 * own does not pay share some, whatever makes less of all values. Returns how much by the one for
 * all; 0: out of memory. */
static double learn_apart(values *v, kinds_model *model, uint32_t kinds, phrase_dict *whole,
                          dicts *d) {
    uint8_t all[KINDS_LANES];
    bool changed[KINDS_MAX] = {false};
    for (uint32_t kind = 0; kind < kinds; kind++)
        if (!learn_and_compare(v, kind, share(v, kind, v->room, v->bytes), whole, d)) return 0;
    double apart = apart_by_whole(v, whole, d), joined = 0;
    dicts shared = *d;
    memcpy(all, model->kind, sizeof all);
    join_others(v, model, kinds, d, changed);
    /* One kind is what the one for all was learned from. */
    bool done = kinds_there(v) == 1 || learn_changed(v, changed, whole, &shared);
    if (done) joined = apart_by_whole(v, whole, &shared);
    if (done && joined < apart) {
        replace(d, &shared);
        return joined;
    }
    replace(&shared, d);
    memcpy(model->kind, all, sizeof all);
    sort_by_kind(v, model);
    return done ? apart : 0;
}

/* Leaves in d the dictionaries that pay: `whole`, the one for all, or one for each of several
 * kinds, which the model tells. Returns how many kinds there are, 0: out of memory. */
static uint32_t choose(values *v, kinds_model *model, uint32_t kinds, dicts *d) {
    phrase_dict *whole = d->of[0];
    d->of[0] = NULL;
    sort_by_kind(v, model);
    double apart = learn_apart(v, model, kinds, whole, d);
    if (apart > 0 && apart + 1. / ALL_WORTH_IT < 1) {
        phrase_free(whole);
        return number(v, model, d);
    }
    free_dicts(d);
    d->of[0] = whole;
    return apart > 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Learns what kinds there are, and their dictionaries. Returns how many, 0: out of memory. */
static uint32_t learn_all(values *v, kinds_model *model, dicts *d) {
    uint32_t kinds = 1;
    if (v->room >= KINDS_ROOM_MIN) {
        if (!phrase_repeated(v->mem, v->all, v->n, &v->repeated)) return 0;
        double most = v->repeated ? PART_BY_HEART : 1;
        kinds = kinds_learn(v->mem, v->all, v->n, most, model);
    }
    if (kinds > 1) {
        v->lanes = kinds;
        v->compares = true;
        sort_by_kind(v, model);
        if (!join_alike(v, model, kinds)) return 0;
        sort_by_kind(v, model);
        kinds = number(v, model, d);
        v->compares = kinds > 1;
    }
    sort_by_kind(v, NULL);
    if (kinds == 0 || !(d->of[0] = learn(v, 0, v->room))) return 0;
    if (kinds == 1) return 1;
    v->room -= sizeof *model;
    return choose(v, model, kinds, d);
}

/* What the dictionaries promise for long values. */
static uint32_t ratio_of_long(const values *v, const dicts *d) {
    double raw = 0, encoded = 0;
    for (size_t i = 0; i < v->n; i++) {
        double len = v->all[i].len;
        if (len < CODEC_LONG) continue;
        raw += len;
        encoded += len * phrase_expected_ratio(d->of[v->kind_of[i]]);
    }
    return (uint32_t)((raw > 0 ? encoded / raw : phrase_expected_ratio(d->of[0])) * 1e6);
}

/* Measures what the dictionaries of several kinds promise, now that they know which they are.
 * False: out of memory. */
static bool rate(codec *c, values *v, uint32_t kinds) {
    for (uint32_t kind = 0; kind < kinds; kind++) {
        size_t n = take(v, kind, true, TEST_BYTES_MAX);
        if (!phrase_rate(c->values[kind], v->some, n)) return false;
    }
    return true;
}

static bool train(codec *c, values *v) {
    dicts d = {0};
    if (!(c->kinds = v->mem->alloc(sizeof *c->kinds))) return false;
    uint32_t kinds = learn_all(v, c->kinds, &d);
    if (kinds < 2) {
        v->mem->free(c->kinds);
        c->kinds = NULL;
    }
    if (kinds == 0) {
        free_dicts(&d);
        return false;
    }
    sort_by_kind(v, c->kinds);
    memcpy(c->values, d.of, sizeof c->values);
    for (uint32_t kind = 0; kind < kinds; kind++) c->bytes += phrase_bytes(d.of[kind]);
    if (kinds > 1) {
        c->bytes += v->mem->usable(c->kinds);
        codec_use_kinds(c);
        if (!rate(c, v, kinds)) return false;
    }
    c->long_ratio = ratio_of_long(v, &d);
    return true;
}

bool codec_train_values(const mem *m, codec *c, const phrase_sample *samples, size_t n, size_t room,
                        uint64_t stored) {
    values v = {.mem = m, .all = samples, .n = n, .room = room, .stored = stored};
    for (size_t i = 0; i < n; i++) v.bytes += samples[i].len;
    v.kind_of = m->alloc(n + 1);
    v.some = m->alloc((n + 1) * sizeof *v.some);
    bool done = false;
    if (v.kind_of && v.some && workspace_init(&v.work, m)) {
        done = train(c, &v);
        workspace_free(&v.work);
    }
    if (v.kind_of) m->free(v.kind_of);
    if (v.some) m->free(v.some);
    return done;
}
