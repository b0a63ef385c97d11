/* map_settle.c: young values become encoded ones, by way of a batch. See map_settle.h. */
#include "map/map_settle.h"

#include "map/map_inside.h"

#include <string.h>

#define BATCH_BYTES_MIN   4096
#define TOUCHED_AT_A_TIME 64 /* records that are sent to the end of the list */

/* ---- the batch ------------------------------------------------------------------------------- */

void young_batch_begin(young_batch *b, const mem *m, map_shared *shared, size_t most,
                       codec_pace pace) {
    b->mem = m;
    b->with = codecs_current(&shared->codecs);
    b->codec = codecs_current_id(&shared->codecs);
    b->effort = (codec_effort){pace, shared->codecs.zstd_level};
    b->count = 0;
    b->used = b->cap = 0;
    b->most = most;
    b->bytes = NULL;
    codecs_retain(&shared->codecs, b->codec);
}

void young_batch_end(young_batch *b, map_shared *shared) {
    codecs_release(&shared->codecs, b->codec);
    if (b->bytes) b->mem->free(b->bytes);
    b->bytes = NULL;
    b->count = 0;
}

/* Room for so many bytes more; it grows as it is needed. False: the batch is full, or there is no
 * memory. */
static bool make_room(young_batch *b, size_t bytes) {
    size_t cap = b->cap ? b->cap : BATCH_BYTES_MIN, needed = b->used + bytes;
    if (b->count == YOUNG_BATCH_ITEMS || (b->count > 0 && needed > b->most)) return false;
    if (needed <= b->cap) return true;
    while (cap < needed) cap = map_at_most(2 * cap, needed > b->most ? needed : b->most);
    uint8_t *grown = b->mem->realloc(b->bytes, cap);
    if (!grown) return false;
    b->bytes = grown;
    b->cap = cap;
    return true;
}

static bool add(young_batch *b, const map *m, large *l) {
    size_t bytes = (size_t)l->key_len + l->value_len;
    if (!make_room(b, bytes)) return false;
    memcpy(b->bytes + b->used, l->bytes, bytes);
    b->items[b->count++] = (young_item){.owner = m->owner,
                                        .number = large_tail(l)->number,
                                        .at = b->used,
                                        .moved = large_tail(l)->moved,
                                        .key_len = l->key_len,
                                        .raw_len = l->value_len - 1};
    b->used += bytes;
    return true;
}

/* False: the batch is full. */
static bool take(map *m, young_batch *b, young_choice which, uint64_t now_ticks) {
    int touched = 0;
    for (large *l; (l = m->to_encode) != NULL;) {
        const young_tail *tail = large_tail(l);
        bool recent = tail->since > which.by && tail->since <= now_ticks; /* by a clock set back */
        if (!which.all && recent) return true;
        if (!which.all && tail->touched) {
            if (++touched > TOUCHED_AT_A_TIME) return true;
            map_young_again(m, l, now_ticks);
            continue;
        }
        if (!add(b, m, l)) return false;
        m->to_encode = tail->newer;
    }
    return true;
}

uint32_t young_batch_fill(young_batch *b, map_shared *shared, young_choice which,
                          uint64_t now_ticks, uint32_t maps) {
    uint32_t seen = 0;
    while (seen < maps && shared->young.ring) {
        map *m = shared->young.ring;
        if (!take(m, b, which, now_ticks)) break;
        seen++;
        shared->young.ring = m->ring_after;
        if (!m->to_encode) map_young_part(m);
    }
    return seen;
}

void young_batch_encode(young_batch *b, uint32_t i, codec_workspace *w) {
    young_item *item = &b->items[i];
    uint8_t *value = b->bytes + item->at + item->key_len; /* 0xff and the value */
    codec_value out;
    if (!codec_encode_value(b->with, w, &w->moved, b->effort, value + 1, item->raw_len, &out))
        return;
    memcpy(value, out.bytes, out.len);
    item->len = (uint32_t)out.len;
    item->expected_len = (float)out.expected_len;
    item->fast = out.fast;
}

/* ---- back into the map ----------------------------------------------------------------------- */

/* The record in its page, as it will be. False: out of memory. */
static bool settled_record(map *m, map_key *k, const map_pos *pos, const codec_value *value,
                           uint64_t now_ticks, map_record *r) {
    /* As seen from now: a base of long ago would make another page's codes coarser. */
    uint64_t base = map_base_of(m, pos->p, now_ticks);
    *r = (map_record){.value = value->bytes,
                      .value_len = (uint32_t)value->len,
                      .fast = value->fast,
                      .code = map_expiry_code(pos, base),
                      .base = base,
                      .uses = page_uses(pos->p, pos->slot)};
    if (!map_is_large(map_encoded_key(m, k, map_codec(m)), value->len)) return true;
    r->large = map_large_new(m, k, value->bytes, value->len);
    return r->large != NULL;
}

/* Places the record beside the young one that it is to replace, and lets `pos` follow that one.
 * False: out of memory, nothing changed. */
static bool place_beside(map *m, map_key *k, const map_record *r, map_pos *pos) {
    map_target to = {.b = map_bucket(m, pos->bucket_index), .codec = map_codec(m)};
    uint32_t slot, before = pos->p->slots;
    if (!map_place(m, &to, k, r, &slot)) return false;
    pos->p = *map_page_at(m, pos);
    uint32_t added = pos->p->slots - before; /* with a head, or in another page */
    if (added > 0 && slot - (added - 1) <= pos->slot) pos->slot += added;
    return true;
}

/* The young record that a result is for, NULL: there is none any more. */
static large *find_young(map *m, map_key *k, map_pos *pos, const young_batch *b,
                         const young_item *item) {
    map_key_init(m, k, b->bytes + item->at, item->key_len);
    large *l = map_find(m, k, pos) ? page_large(pos->p, pos->slot) : NULL;
    return l && l->young ? l : NULL;
}

void map_settle(map *m, const young_batch *b, const young_item *item, uint64_t now_ticks) {
    map_key k;
    map_pos pos;
    map_record r;
    codec_value value = {.bytes = b->bytes + item->at + item->key_len,
                         .len = item->len,
                         .raw_len = item->raw_len,
                         .expected_len = (double)item->expected_len,
                         .fast = item->fast};
    large *l = find_young(m, &k, &pos, b, item);
    if (!l) return;
    bool valid = large_tail(l)->number == item->number && b->codec == map_codec(m);
    map_size before = map_size_now(m);
    if (!valid || item->len == 0 || !settled_record(m, &k, &pos, &value, now_ticks, &r)) {
        map_young_again(m, l, now_ticks);
        return;
    }
    if (!place_beside(m, &k, &r, &pos)) {
        if (r.large) m->shared->mem->free(r.large);
        map_young_again(m, l, now_ticks);
        return;
    }
    map_free_large(m, l);
    map_remove_slot(m, &pos);
    m->shared->codecs.fast += r.fast && !r.large;
    if (r.large) map_count_large(m, r.large);
    m->shared->young.settled++;
    if (!item->moved) codecs_note_written(&m->shared->codecs, &value);
    map_balance(m, pos.bucket_index, now_ticks);
    map_tell_group(m, &before);
}

void map_touch(map *m, const map_pos *pos) {
    large *l = page_large(pos->p, pos->slot);
    if (!l || !l->young) return;
    large_tail(l)->touched = true;
    m->shared->young.read++;
}
