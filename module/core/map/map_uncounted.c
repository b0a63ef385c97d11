/* map_uncounted.c: see map_uncounted.h. */
#include "map/map_uncounted.h"
#include "map/map_inside.h"

#include <string.h>

/* In libc's memory, as what is taken for a moment is. NULL: there is none. */
static uncounted_batch *new_batch(codecs *codecs, uint8_t codec) {
    uncounted_batch *b = mem_libc.alloc(sizeof *b);
    if (!b) return NULL;
    b->with = codecs_get(codecs, codec);
    b->codec = codec;
    b->counted_out = false;
    b->count = b->used = 0;
    codecs_retain(codecs, codec);
    return b;
}

/* Whether telling its length takes going over codes. */
static bool has_codes(const uint8_t *encoded, size_t n) {
    return n > 0 && n <= UNCOUNTED_BYTES && encoded[0] < CODEC_ESCAPES;
}

bool uncounted_note(map *m, uint8_t codec, const uint8_t *encoded, size_t n) {
    uncounted_values *u = &m->shared->uncounted;
    if (!u->exchange || !m->group || u->full || !has_codes(encoded, n)) return false;
    if (!u->open && !(u->open = new_batch(&m->shared->codecs, codec))) return false;
    uncounted_batch *b = u->open;
    u->full = b->used + n > UNCOUNTED_BYTES || b->count == UNCOUNTED_ITEMS;
    if (u->full || b->codec != codec) return false;
    memcpy(b->bytes + b->used, encoded, n);
    b->items[b->count++] = (uncounted_item){m, b->used, (uint32_t)n, 0};
    b->used += (uint32_t)n;
    return true;
}

void uncounted_undo(map_shared *s) {
    uncounted_batch *b = s->uncounted.open;
    b->used = b->items[--b->count].at;
}

uncounted_batch *uncounted_take(map_shared *s) {
    uncounted_values *u = &s->uncounted;
    for (int i = 0; u->open && i < UNCOUNTED_AWAY; i++) {
        if (u->away[i]) continue;
        u->away[i] = u->open;
        u->open = NULL;
        u->full = false;
        return u->away[i];
    }
    return NULL;
}

static size_t raw_len(const uncounted_batch *b, uint32_t i) {
    return codec_value_len(b->with, b->bytes + b->items[i].at, b->items[i].len);
}

void uncounted_count(uncounted_batch *b) {
    for (uint32_t i = 0; i < b->count; i++) b->items[i].raw_len = raw_len(b, i);
}

/* What a map's file has said may be too little. */
static void count_out(map *m, size_t len) {
    if (len == CODEC_NO_ROOM) return;
    uint64_t counted = map_at_most(len, m->totals.value_bytes);
    m->totals.value_bytes -= counted;
    m->group->totals.value_bytes -= counted;
}

void uncounted_end(map_shared *s, uncounted_batch *b) {
    for (uint32_t i = 0; !b->counted_out && i < b->count; i++)
        count_out(b->items[i].from, b->items[i].raw_len);
    for (int i = 0; i < UNCOUNTED_AWAY; i++)
        if (s->uncounted.away[i] == b) s->uncounted.away[i] = NULL;
    codecs_release(&s->codecs, b->codec);
    mem_libc.free(b);
}

bool uncounted_any(const map_shared *s) {
    bool any = s->uncounted.open != NULL;
    for (int i = 0; i < UNCOUNTED_AWAY; i++) any |= s->uncounted.away[i] != NULL;
    return any;
}

/* Another thread may be counting it, too. */
static void count_out_batch(uncounted_batch *b) {
    for (uint32_t i = 0; !b->counted_out && i < b->count; i++)
        count_out(b->items[i].from, raw_len(b, i));
    b->counted_out = true;
}

void uncounted_count_out(map_shared *s) {
    uncounted_values *u = &s->uncounted;
    for (int i = 0; i < UNCOUNTED_AWAY; i++)
        if (u->away[i]) count_out_batch(u->away[i]);
    if (!u->open) return;
    count_out_batch(u->open);
    uncounted_end(s, u->open);
    u->open = NULL;
    u->full = false;
}
