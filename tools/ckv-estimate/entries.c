/* entries.c: see entries.h. */
#include "entries.h"

#include "base/hash_slot.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/stem.h"
#include "common/common.h"
#include "map/defaults.h"
#include "neighbours.h"
#include "stems.h"

#include <stdlib.h>
#include <string.h>

#define SUFFIXES 100

/* A key whose stem no other key before it has. */
typedef struct head {
    const sampled *key;
    uint32_t place;
    struct head *next; /* of its family */
} head;

/* The groups that a family's keys are put into, one after the other. */
typedef struct grouping {
    double chances[SUFFIXES + 1]; /* of each size; [0]: their sum, 0: neighbours were not counted */
    head *heads;                  /* whose stems have not been used */
    const head *current;
    uint32_t left;  /* keys that the group still gets */
    uint8_t suffix; /* of the last one */
} grouping;

static uint64_t next_random(void) {
    static uint64_t state = 0x9e3779b97f4a7c15ULL;
    return random_next(&state);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* A group of ten is met ten times as often as one of one. */
static void count_groups(grouping *families, const sample *s) {
    for (size_t i = 0; i < s->count; i++) {
        const sampled *k = &s->all[i];
        if (k->group == 0) continue;
        families[k->family].chances[k->group] += 1.0 / k->group;
        families[k->family].chances[0] += 1.0 / k->group;
    }
}

static uint32_t draw_size(const grouping *g) {
    double at = (double)(next_random() >> 11) / (double)(1ULL << 53) * g->chances[0];
    for (uint32_t size = 1; size < SUFFIXES; size++)
        if ((at -= g->chances[size]) < 0) return size;
    return SUFFIXES;
}

/* Gives an entry a key of its family's group. A sample has more stems than groups of full size. */
static void regroup(grouping *g, entry *e) {
    if (g->left == 0 && g->heads) {
        g->left = draw_size(g);
        g->current = g->heads;
        g->heads = g->heads->next;
    }
    if (g->left == 0) return;
    g->left--;
    g->suffix = (uint8_t)((g->suffix + 1) % SUFFIXES);
    const sampled *k = g->current->key;
    e->len = k->key_len;
    e->place = g->current->place;
    free(e->key);
    e->key = allocate(e->len + 1u);
    memcpy(e->key, k->key, e->len);
    stem_join((uint8_t *)e->key, e->len - STEM_DIGITS, g->suffix);
}

/* Whether the key belongs to a family whose neighbours were counted, and may have some. */
static bool is_grouped(const grouping *families, const sampled *k) {
    return neighbours_share(k) && families[k->family].chances[0] > 0;
}

static void regroup_all(entries *all, const sample *s) {
    grouping *families = allocate((s->families.count + 1) * sizeof *families);
    head *heads = allocate((all->count + 1) * sizeof *heads);
    stems *seen = stems_new(all->count);
    count_groups(families, s);
    for (size_t i = all->count; i-- > 0;) {
        const sampled *k = &s->all[all->all[i].sampled];
        if (!is_grouped(families, k) || !stems_add(seen, k->key, k->key_len - STEM_DIGITS))
            continue;
        heads[i] = (head){k, all->all[i].place, families[k->family].heads};
        families[k->family].heads = &heads[i];
    }
    for (size_t i = 0; i < all->count; i++) {
        const sampled *k = &s->all[all->all[i].sampled];
        if (is_grouped(families, k)) regroup(&families[k->family], &all->all[i]);
    }
    stems_free(seen);
    free(heads);
    free(families);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Of a part of the store the same part of the places, into which its stems fall as all of them do
 * into all: of 2000 stems a seventh of 1024 places gets none, so do 800 stems of 410 places. */
static uint32_t part_of(const entries *r, const selection *chosen, double places) {
    double share = chosen->strings > 0 ? (double)r->count / chosen->strings : 1;
    double part = share < 1 ? places * share : places;
    return part > 1 ? (uint32_t)(part + 0.5) : 1;
}

/* As the server finds them (keyspace/places.h), but for the secret, which makes no difference. */
static uint32_t place_of(const sampled *k, uint32_t places) {
    static const uint64_t secret[2] = {3, 4};
    const uint8_t *key = (const uint8_t *)k->key;
    uint8_t suffix;
    size_t stem = stem_split(key, k->key_len, &suffix);
    uint32_t place = (uint32_t)(siphash13(key, stem, secret) % places);
    return k->database * places + place;
}

static void find_places(entries *r, const sample *s, const server *from, const selection *chosen) {
    uint32_t places = part_of(r, chosen, DEFAULT_MAPS);
    r->places = from->count * places;
    for (size_t i = 0; i < r->count; i++)
        r->all[i].place = place_of(&s->all[r->all[i].sampled], places);
}

/* In a cluster what is in a slot stays together. Slots are those of all strings, those that are not
 * stored included. */
static void find_slots(entries *r, const sample *s, const selection *chosen) {
    uint32_t *numbers = allocate(HASH_SLOTS * sizeof *numbers), slots = 0;
    size_t stored = 0;
    for (size_t i = 0; i < s->count; i++) {
        const sampled *k = &s->all[i];
        if (!selection_fits(k)) continue;
        uint32_t *number = &numbers[hash_slot_of_key(k->key, k->key_len)];
        if (*number == 0) *number = ++slots;
        if (stored < r->count && r->all[stored].sampled == i) r->all[stored++].place = *number - 1;
    }
    r->places = part_of(r, chosen, slots);
    for (size_t i = 0; i < r->count; i++) r->all[i].place %= r->places;
    free(numbers);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void add(entries *r, const sample *s, size_t i) {
    const sampled *k = &s->all[i];
    char *key = allocate(k->key_len + 1u);
    memcpy(key, k->key, k->key_len);
    r->all[r->count++] = (entry){.sampled = i, .key = key, .len = k->key_len};
}

void entries_make(entries *r, const sample *s, const selection *chosen, const server *from) {
    *r = (entries){.all = allocate((chosen->stored_count + 1) * sizeof *r->all)};
    for (size_t i = 0; i < s->count; i++)
        if (chosen->stored[i]) add(r, s, i);
    if (from->cluster)
        find_slots(r, s, chosen);
    else
        find_places(r, s, from, chosen);
    if (!s->whole) regroup_all(r, s);
}

void entries_free(entries *r) {
    for (size_t i = 0; i < r->count; i++) free(r->all[i].key);
    free(r->all);
}
