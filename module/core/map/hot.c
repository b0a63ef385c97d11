/* hot.c: see hot.h. */
#include "map/hot.h"

#include <string.h>

/* At first, and at most: to double them takes less than half a millisecond. */
#define SETS_MIN 16
#define SETS_MAX (32u << 10)
/* More keys than this: there are more slots. A set is seldom full, then. */
#define FILLED(slots) ((slots) / 2)
/* Of the room for all: what the slots may take, and one value. */
#define SLOTS_SHARE(room) ((room) / 16)
#define VALUE_SHARE(room) ((room) / 8)
#define EARNED_MAX        1024 /* exchanges */
/* When values are dropped: those that were used lately are spared so long, and so many slots are
 * looked at. */
#define SPARED_MAX 1024
#define LOOKED_MAX (16u << 10)
/* For so many bytes that come, so many go at most: nobody is to wait for thousands of values. */
#define MADE_ROOM_MAX(bytes) (4 * (bytes))

_Static_assert(HOT_WAYS * sizeof(hot_slot) == 64, "a set is a cache line");

void hot_init(hot_values *h, const mem *m) {
    *h = (hot_values){.mem = m};
}

/* ---- slots ----------------------------------------------------------------------------------- */

uint32_t hot_slots(const hot_values *h) {
    return h->slots ? h->sets * HOT_WAYS : 0;
}

static void free_slots(hot_values *h) {
    h->bytes -= h->mem->usable(h->slots);
    h->mem->free(h->slots);
    h->slots = NULL;
    h->sets = h->hand = 0;
}

/* What is in a set goes to one of two. False: out of memory, nothing changed. */
static bool set_sets(hot_values *h, uint32_t sets) {
    hot_slot *slots = h->mem->alloc(sets * HOT_WAYS * sizeof *slots);
    if (!slots) return false;
    memset(slots, 0, sets * HOT_WAYS * sizeof *slots);
    for (uint32_t i = 0; i < hot_slots(h); i++)
        if (h->slots[i].mark)
            slots[(h->slots[i].mark & (sets - 1)) * HOT_WAYS + i % HOT_WAYS] = h->slots[i];
    if (h->slots) free_slots(h);
    h->slots = slots;
    h->sets = sets;
    h->bytes += h->mem->usable(slots);
    return true;
}

/* As many sets as the keys need, and there may be. False: there are none. */
static bool make_sets(hot_values *h, uint64_t room) {
    uint32_t wanted = !h->slots                          ? SETS_MIN
                      : h->marked > FILLED(hot_slots(h)) ? 2 * h->sets
                                                         : h->sets;
    if (wanted != h->sets && wanted <= SETS_MAX &&
        wanted * HOT_WAYS * sizeof(hot_slot) <= SLOTS_SHARE(room))
        set_sets(h, wanted);
    return h->slots != NULL;
}

static hot_slot *set_of(const hot_values *h, uint32_t mark) {
    return h->slots + (size_t)(mark & (h->sets - 1)) * HOT_WAYS;
}

static hot_slot *slot_of(const hot_values *h, uint32_t mark) {
    hot_slot *set = set_of(h, mark);
    for (int i = 0; i < HOT_WAYS; i++)
        if (set[i].mark == mark) return &set[i];
    return NULL;
}

static hot_slot *next_slot(hot_values *h) {
    hot_slot *s = &h->slots[h->hand];
    h->hand = (h->hand + 1) & (hot_slots(h) - 1);
    return s;
}

/* Remembers a key instead of another one that is not kept. */
static void remember(hot_values *h, uint32_t mark) {
    hot_slot *set = set_of(h, mark), *to = NULL;
    for (int i = 0; i < HOT_WAYS && (!to || to->mark); i++)
        if (!set[i].value && (!to || !set[i].mark || !set[i].used)) to = &set[i];
    if (!to) return;
    h->marked += to->mark == 0;
    *to = (hot_slot){.mark = mark, .used = true};
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_of(const hot_value *v, const hot_key *key) {
    return v->codec == key->codec && v->len == key->len && !memcmp(v->bytes, key->encoded, v->len);
}

/* The key is remembered still. Returns the bytes that this frees. */
static size_t let_go(hot_values *h, hot_slot *s) {
    size_t bytes = h->mem->usable(s->value);
    h->mem->free(s->value);
    s->value = NULL;
    h->bytes -= bytes;
    h->count--;
    return bytes;
}

static void keep(hot_values *h, hot_slot *s, const hot_key *key, const uint8_t *value, size_t len,
                 uint64_t room) {
    size_t bytes = sizeof(hot_value) + key->len + len;
    if (bytes > VALUE_SHARE(room)) return;
    if (h->bytes + bytes > room) {
        if (h->earned == 0) return;
        h->earned--;
        hot_make_room(h, h->bytes + bytes - room, bytes);
        if (h->bytes + bytes > room) return;
    }
    hot_value *v = h->mem->alloc(bytes);
    if (!v) return;
    *v = (hot_value){.codec = key->codec, .len = (uint32_t)key->len, .raw_len = (uint32_t)len};
    memcpy(v->bytes, key->encoded, key->len);
    memcpy(v->bytes + key->len, value, len);
    s->value = v;
    s->used = true;
    h->bytes += h->mem->usable(v);
    h->count++;
}

/* NULL: it is not kept. */
static hot_slot *find(const hot_values *h, const hot_key *key) {
    hot_slot *s = h->count > 0 ? slot_of(h, key->mark) : NULL;
    return s && s->value && is_of(s->value, key) ? s : NULL;
}

bool hot_take(hot_values *h, const hot_key *key, size_t *len) {
    hot_slot *s = find(h, key);
    if (!s) return false;
    *len = s->value->raw_len;
    let_go(h, s);
    return true;
}

const uint8_t *hot_find(hot_values *h, const hot_key *key, size_t *len) {
    hot_slot *s = find(h, key);
    if (!s) return NULL;
    if (!s->used) s->used = true;
    h->read++;
    if (h->earned < EARNED_MAX) h->earned++;
    *len = s->value->raw_len;
    return s->value->bytes + s->value->len;
}

void hot_note(hot_values *h, const hot_key *key, const uint8_t *value, size_t len, uint64_t room) {
    uint64_t before = h->bytes;
    if (room == 0 || !make_sets(h, room)) return;
    hot_slot *s = slot_of(h, key->mark);
    if (!s)
        remember(h, key->mark);
    else if (s->value) /* of what was there before */
        let_go(h, s);
    else
        keep(h, s, key, value, len, room);
    /* Slots may have been added, and an allocation may be larger than was asked for. */
    if (h->bytes > room && h->bytes > before) hot_make_room(h, h->bytes - room, h->bytes - before);
}

/* ---- the hand -------------------------------------------------------------------------------- */

size_t hot_drop(hot_values *h, size_t bytes) {
    size_t freed = 0;
    for (uint32_t i = 0; i < LOOKED_MAX && freed < bytes && h->count > 0; i++) {
        hot_slot *s = next_slot(h);
        if (!s->value) continue;
        if (!s->used || i >= SPARED_MAX) freed += let_go(h, s);
        s->used = false;
    }
    return freed;
}

void hot_make_room(hot_values *h, uint64_t too_much, size_t bytes) {
    hot_drop(h, too_much < MADE_ROOM_MAX(bytes) ? too_much : MADE_ROOM_MAX(bytes));
}

bool hot_is_too_much(const hot_values *h) {
    return h->bytes > h->limit && (h->count > 0 || h->limit == 0);
}

void hot_pass(hot_values *h, uint32_t slots) {
    for (; slots > 0 && h->slots; slots--) {
        hot_slot *s = next_slot(h);
        bool goes = s->mark && !s->used;
        s->used = false;
        if (!goes) continue;
        if (s->value) let_go(h, s);
        s->mark = 0;
        if (--h->marked == 0) free_slots(h);
    }
}

void hot_clear(hot_values *h) {
    for (uint32_t i = 0; i < hot_slots(h); i++)
        if (h->slots[i].value) let_go(h, &h->slots[i]);
    h->marked = 0;
    if (h->slots) free_slots(h);
}

/* ---- invariants ------------------------------------------------------------------------------ */

bool hot_sane(const hot_values *h) {
    uint64_t bytes = h->slots ? h->mem->usable(h->slots) : 0, count = 0, marked = 0;
    for (uint32_t i = 0; i < hot_slots(h); i++) {
        const hot_slot *s = &h->slots[i];
        if (s->mark && set_of(h, s->mark) != h->slots + i / HOT_WAYS * HOT_WAYS) return false;
        if (s->value && !s->mark) return false;
        marked += s->mark != 0;
        count += s->value != NULL;
        bytes += s->value ? h->mem->usable(s->value) : 0;
    }
    return bytes == h->bytes && count == h->count && marked == h->marked;
}
