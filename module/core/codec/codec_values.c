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
 *
 * The second is asked of all that there is to learn from: of a part of it, two dictionaries are
 * worse than one much more often.
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
/* What a dictionary of its own must save of a kind's bytes: 1 in so many. */
#define WORTH_IT 50

typedef struct values {
    const mem *mem;
    const phrase_sample *all;
    size_t n, room;      /* for all dictionaries, bytes */
    bool compares;       /* there are several kinds */
    uint8_t *kind_of;    /* [n] */
    phrase_sample *some; /* [n] */
    double bytes, bytes_of[KINDS_MAX];
    /* What the small dictionary of one kind, as they were learned, makes of the values of another,
     * by what their own does. */
    double unlike[KINDS_MAX][KINDS_MAX];
    uint32_t lanes; /* how many were learned */
    codec_workspace work;
} values;

typedef struct dicts {
    phrase_dict *of[KINDS_MAX];
} dicts;

static void free_dicts(dicts *d) {
    for (int i = 0; i < KINDS_MAX; i++)
        if (d->of[i]) phrase_free(d->of[i]);
    *d = (dicts){0};
}

/* Without a model all are of one kind. */
static void sort_by_kind(values *v, const kinds_model *model) {
    memset(v->bytes_of, 0, sizeof v->bytes_of);
    for (size_t i = 0; i < v->n; i++) {
        pace_keep();
        uint32_t len = v->all[i].len;
        uint32_t kind = model && len > 0 ? kinds_of(model, v->all[i].data, len) : 0;
        v->kind_of[i] = (uint8_t)kind;
        v->bytes_of[kind] += len;
    }
}

/* Takes values of a kind that are to be learned, or of the others, to v->some, `most` bytes of
 * them; returns how many. Whatever kinds there are, those to be learned are always the same ones.
 */
static size_t take(values *v, uint32_t kind, bool to_test, double most) {
    size_t n = 0;
    double bytes = 0;
    for (size_t i = 0; i < v->n && bytes < most; i++) {
        bool tests = v->compares && i % TEST_EVERY == TEST_EVERY / 2;
        if (v->kind_of[i] != kind || tests != to_test) continue;
        pace_keep();
        bytes += v->all[i].len;
        v->some[n++] = v->all[i];
    }
    return n;
}

/* A dictionary for a kind, with room for its part of the bytes. */
static phrase_dict *learn(values *v, uint32_t kind) {
    double share = v->bytes > 0 ? v->bytes_of[kind] / v->bytes : 1;
    size_t n = take(v, kind, false, INFINITY);
    return phrase_train(v->mem, v->some, n, (size_t)((double)v->room * share), true);
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
            size_t got = phrase_encode_cheapest(dict[d], scratch, s->data, s->len, out, cap);
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

/* Gives the kinds that are left, and their dictionaries, the lowest numbers; returns how many they
 * are. */
static uint32_t number(kinds_model *model, dicts *d) {
    uint32_t kinds = 0;
    for (uint32_t kind = 0; kind < KINDS_MAX; kind++) {
        bool any = false;
        for (int lane = 0; lane < KINDS_LANES; lane++) any |= model->kind[lane] == kind;
        if (!any) continue;
        join(model, kinds, kind);
        phrase_dict *dict = d->of[kind];
        d->of[kind] = NULL;
        d->of[kinds++] = dict;
    }
    return kinds;
}

static bool learn_little(values *v, uint32_t kinds, dicts *d) {
    for (uint32_t kind = 0; kind < kinds; kind++) {
        size_t n = take(v, kind, false, ALIKE_LEARNED);
        d->of[kind] = phrase_train(v->mem, v->some, n, ALIKE_ROOM, true);
        if (!d->of[kind]) return false;
    }
    return true;
}

/* Joins the kinds that are alike. False: out of memory. */
static bool join_alike(values *v, kinds_model *model, uint32_t kinds) {
    dicts d = {0};
    bool done = learn_little(v, kinds, &d);
    for (uint32_t a = 0; done && a < kinds; a++) {
        double *unlike = v->unlike[a];
        done = test(v, a, d.of, kinds, unlike);
        double own = unlike[a];
        for (uint32_t b = 0; b < kinds; b++) {
            unlike[b] = own > 0 ? unlike[b] / own : INFINITY;
            if (done && unlike[b] <= ALIKE) join(model, model->kind[a], model->kind[b]);
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

/* Bytes that values come to: by one dictionary for all, and by one for each kind. */
typedef struct outcome {
    double whole, apart;
} outcome;

static bool compare(values *v, uint32_t kind, const dicts *d, phrase_dict *whole, outcome *o) {
    double encoded[2];
    if (!test(v, kind, (phrase_dict *[]){whole, d->of[kind]}, 2, encoded)) return false;
    *o = (outcome){encoded[0], encoded[1]};
    return true;
}

static bool is_worth_it(outcome o) {
    return o.apart + o.whole / WORTH_IT < o.whole;
}

/* Joins each kind for which a dictionary of its own does not pay with what it is most alike, or the
 * others of these, so that they share one. False: out of memory. */
static bool join_others(values *v, kinds_model *model, uint32_t kinds, phrase_dict *whole,
                        dicts *d) {
    uint32_t lane[KINDS_MAX], to[KINDS_MAX], other = KINDS_MAX;
    for (uint32_t kind = 0; kind < kinds; kind++) {
        outcome o;
        if (!compare(v, kind, d, whole, &o)) return false;
        lane[kind] = any_lane(model, kind);
        to[kind] = is_worth_it(o) ? lane[kind] : nearest(v, model, kind);
        if (to[kind] < KINDS_MAX) continue;
        if (other == KINDS_MAX) other = lane[kind];
        to[kind] = other;
    }
    bool joined[KINDS_MAX] = {false};
    for (uint32_t kind = 0; kind < kinds; kind++) {
        uint32_t a = model->kind[to[kind]], b = model->kind[lane[kind]];
        if (a == b) continue;
        join(model, a, b);
        joined[a] = joined[b] = true;
    }
    sort_by_kind(v, model);
    for (uint32_t kind = 0; kind < kinds; kind++) {
        if (!joined[kind]) continue;
        phrase_free(d->of[kind]);
        d->of[kind] = NULL;
        if (v->bytes_of[kind] > 0 && !(d->of[kind] = learn(v, kind))) return false;
    }
    return true;
}

/* Whether all kinds together gain by their dictionaries, and these have room: the smallest that
 * there is may take more than the part of a small kind. */
static bool pay(values *v, uint32_t kinds, phrase_dict *whole, const dicts *d) {
    outcome all = {0}, o;
    size_t bytes = 0;
    for (uint32_t kind = 0; kind < kinds; kind++) {
        if (!compare(v, kind, d, whole, &o)) return false;
        all.whole += o.whole;
        all.apart += o.apart;
        bytes += phrase_bytes(d->of[kind]);
    }
    return is_worth_it(all) && bytes <= v->room + v->room / 16;
}

/* Leaves in d the dictionaries that pay: `whole`, the one for all, or one for each of several
 * kinds, which the model tells. Returns how many kinds there are, 0: out of memory. */
static uint32_t choose(values *v, kinds_model *model, uint32_t kinds, dicts *d) {
    phrase_dict *whole = d->of[0];
    d->of[0] = NULL;
    sort_by_kind(v, model);
    bool done = true;
    for (uint32_t kind = 0; done && kind < kinds; kind++)
        done = (d->of[kind] = learn(v, kind)) != NULL;
    done = done && join_others(v, model, kinds, whole, d);
    if (done) {
        kinds = number(model, d);
        sort_by_kind(v, model);
    }
    if (done && kinds > 1 && pay(v, kinds, whole, d)) {
        phrase_free(whole);
        return kinds;
    }
    free_dicts(d);
    d->of[0] = whole;
    return done;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Learns what kinds there are, and their dictionaries. Returns how many, 0: out of memory. */
static uint32_t learn_all(values *v, kinds_model *model, dicts *d) {
    uint32_t kinds = 1;
    if (v->room >= KINDS_ROOM_MIN) kinds = kinds_learn(v->mem, v->all, v->n, model);
    if (kinds > 1) {
        v->lanes = kinds;
        v->compares = true;
        sort_by_kind(v, model);
        if (!join_alike(v, model, kinds)) return 0;
        kinds = number(model, d);
        v->compares = kinds > 1;
    }
    sort_by_kind(v, NULL);
    if (kinds == 0 || !(d->of[0] = learn(v, 0))) return 0;
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
    c->long_ratio = ratio_of_long(v, &d);
    memcpy(c->values, d.of, sizeof c->values);
    for (uint32_t kind = 0; kind < kinds; kind++) c->bytes += phrase_bytes(d.of[kind]);
    if (kinds < 2) return true;
    c->bytes += v->mem->usable(c->kinds);
    codec_use_kinds(c);
    return true;
}

bool codec_train_values(const mem *m, codec *c, const phrase_sample *samples, size_t n,
                        size_t room) {
    values v = {.mem = m, .all = samples, .n = n, .room = room};
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
