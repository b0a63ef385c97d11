/* map_reencode.c: see map_reencode.h. */
#include "map/map_reencode.h"

#include "map/map_inside.h"

#define SPLITS_AT_A_TIME 2

typedef struct reencoding {
    map *m;
    uint32_t bucket;
    uint64_t now_ticks;
    size_t work, worked; /* bytes: may be, was */
    mem_retired *old;
} reencoding;

/* Whether there is time for a record whose value has so many bytes; it is taken then. */
static bool take_time(reencoding *r, size_t len) {
    if (r->worked > 0 && r->worked + len + MAP_RECORD_WORK > r->work) return false;
    r->worked += len + MAP_RECORD_WORK;
    return true;
}

/* Whether there is time to pour a bucket into new pages. */
static bool may_pour(const reencoding *r) {
    return r->worked == 0 || r->worked + MAP_BUCKET_BYTES <= r->work;
}

/* ---- one record ------------------------------------------------------------------------------ */

/* Whether a large value of so many bytes is for another thread to encode. */
static bool may_be_young(const map *m, const map_key *k, size_t len) {
    return m->group && k->len <= LARGE_LONG_KEY && young_is_long(len) &&
           len + YOUNG_EXTRA <= m->shared->young.limit_moved;
}

/* What fails takes no time, or whoever goes on would get no further than to it again. */
static map_step make_young(reencoding *r, const map_key *k, map_pos *pos, size_t len, large **out) {
    map_shared *s = r->m->shared;
    size_t worked = r->worked;
    if (!take_time(r, len)) return MAP_MORE;
    bool room = s->young.bytes + len + YOUNG_EXTRA <= s->young.limit_moved;
    if (!room || !map_make_young_room(s, len)) return MAP_WAITS;
    const uint8_t *value = map_value(r->m, pos, &len);
    *out = value ? map_young_new(r->m, k, value, len, 0) : NULL;
    if (!*out) r->worked = worked;
    return *out ? MAP_DONE : MAP_FAILED;
}

/* The record of a slot as the current codec writes it: a large one is a new one, or the same if it
 * need not be written anew. */
static map_step encode(reencoding *r, const page_walk *at, map_key *k, map_record *out) {
    map_pos pos = {.p = at->p, .slot = at->slot};
    size_t len;
    codec_value encoded;
    map_shared *shared = r->m->shared;
    *out = map_record_of(at);
    out->fast = false;
    uint32_t old_len;
    const uint8_t *old = map_encoded_value(&pos, &old_len);
    if (codec_is_common(old, old_len) || (out->large && out->large->young)) {
        if (!take_time(r, 0)) return MAP_MORE;
        if (out->large) return MAP_DONE;
    } else {
        len = out->large && shared->young.limit_moved > 0 ? map_value_len(r->m, &pos) : 0;
        if (may_be_young(r->m, k, len)) return make_young(r, k, &pos, len, &out->large);
        const uint8_t *value = map_value(r->m, &pos, &len);
        if (!value) return MAP_FAILED;
        if (!take_time(r, len)) return MAP_MORE;
        if (!codecs_encode_moved(&shared->codecs, &shared->work, value, len, &encoded))
            return MAP_FAILED;
        out->value = encoded.bytes;
        out->value_len = (uint32_t)encoded.len;
        out->large = NULL;
    }
    if (!map_is_large(map_encoded_key(r->m, k, map_codec(r->m)), out->value_len)) return MAP_DONE;
    out->large = map_large_new(r->m, k, out->value, out->value_len);
    return out->large ? MAP_DONE : MAP_FAILED;
}

/* Puts the record into a page of the current codec; where it was it is to be taken out, but for a
 * large record that is not there any more. */
static map_step move_record(reencoding *r, const page_walk *at, map_key *k) {
    map_record record;
    large *before = page_large(at->p, at->slot);
    map_step step = encode(r, at, k, &record);
    if (step != MAP_DONE) return step;
    map_target to = {
        .b = map_bucket(r->m, r->bucket), .codec = map_codec(r->m), .page_room = PAGE_BYTES};
    uint32_t slot;
    if (!map_place(r->m, &to, k, &record, &slot)) {
        if (record.large && record.large != before) r->m->shared->mem->free(record.large);
        return MAP_FAILED;
    }
    if (record.large == before) return MAP_DONE;
    if (record.large) map_count_large(r->m, record.large);
    if (before) map_free_large(r->m, before);
    return MAP_DONE;
}

/* ---- one page -------------------------------------------------------------------------------- */

/* Deletes the first records of a page that has more. */
static void delete_first(page *p, uint32_t records) {
    for (; records > 0; records--) page_delete(p, page_is_head(page_tags(p)[0]) ? 1 : 0);
}

/* Moves the records of one page; a page that is done with is gone. */
static map_step reencode_page(reencoding *r, uint32_t page_index) {
    uint32_t n, moved = 0;
    bucket *b = map_bucket(r->m, r->bucket);
    page *p = bucket_pages(b, &n)[page_index];
    map_keys keys = {.m = r->m};
    map_step step = MAP_DONE;
    page_rebase(p, map_base_of(r->m, p, r->now_ticks));
    for (page_walk at = page_walk_start(p); step == MAP_DONE && page_walk_next(&at);) {
        if (!map_keys_read(&keys, &at))
            step = MAP_FAILED;
        else if (!page_is_head(at.tag) && (step = move_record(r, &at, &keys.key)) == MAP_DONE)
            moved++;
    }
    if (step == MAP_DONE)
        map_remove_page(r->m, b, page_index, r->old);
    else
        delete_first(p, moved);
    return step;
}

/* ---- a bucket -------------------------------------------------------------------------------- */

static map_step reencode_bucket(reencoding *r) {
    bool failed = false;
    uint32_t n;
    bucket *b = map_bucket(r->m, r->bucket);
    for (uint32_t i = 0; bucket_pages(b, &n), i < n;) {
        if (bucket_pages(b, &n)[i]->codec == map_codec(r->m)) {
            i++;
            continue;
        }
        switch (reencode_page(r, i)) {
        case MAP_DONE: /* another page is there now */
            break;
        case MAP_MORE:
            return MAP_MORE;
        case MAP_WAITS:
            return MAP_WAITS;
        case MAP_FAILED:
            failed = true;
            i++;
        }
    }
    map_trim_bucket(r->m, map_bucket(r->m, r->bucket));
    return failed ? MAP_FAILED : MAP_DONE;
}

/* The last bucket is brought to the current codec before it is merged into another, which whoever
 * comes by all buckets may have come by already. */
static map_step merge(reencoding *r) {
    if (!map_is_sparse(r->m)) return MAP_DONE;
    r->bucket = r->m->buckets - 1;
    map_step step = reencode_bucket(r);
    if (step != MAP_DONE) return step;
    if (!may_pour(r)) return MAP_MORE;
    bool merged = map_merge(r->m, r->now_ticks, r->old);
    return merged && map_is_sparse(r->m) ? MAP_MORE : MAP_DONE;
}

/* Large records may have come into pages. */
static map_step split(const reencoding *r) {
    for (int i = 0; map_is_crowded(r->m); i++) {
        if (i == SPLITS_AT_A_TIME) return MAP_MORE;
        if (!map_split(r->m, r->now_ticks, r->old)) break;
    }
    return MAP_DONE;
}

map_step map_reencode(map *m, uint32_t bucket_index, uint64_t now_ticks, size_t work,
                      mem_retired *old) {
    map_size before = map_size_now(m);
    reencoding r = {
        .m = m, .bucket = bucket_index, .now_ticks = now_ticks, .work = work, .old = old};
    map_step step = reencode_bucket(&r);
    if (step == MAP_DONE && !may_pour(&r)) step = MAP_MORE;
    if (step == MAP_DONE) map_compact(m, bucket_index, now_ticks, old);
    if (step == MAP_DONE) step = merge(&r);
    if (step == MAP_DONE) step = split(&r);
    map_tell_group(m, &before);
    return step;
}

/* ---- for other threads ----------------------------------------------------------------------- */

/* Makes young what the slot of a page points to, where it may be. */
static map_step make_slot_young(reencoding *r, const page_walk *at, large *was) {
    map_pos pos = {.p = at->p, .slot = at->slot};
    map_key k = {.key = was->bytes, .len = was->key_len};
    large *now;
    if (was->young || codec_is_common(large_value(was), was->value_len)) return MAP_DONE;
    size_t len = map_value_len(r->m, &pos);
    if (!may_be_young(r->m, &k, len)) return MAP_DONE;
    map_step step = make_young(r, &k, &pos, len, &now);
    if (step != MAP_DONE) return step;
    page_set_large(at, now, at->tag);
    map_count_large(r->m, now);
    map_free_large(r->m, was);
    return MAP_DONE;
}

static map_step make_page_young(reencoding *r, page *p) {
    large *l;
    if (p->codec == map_codec(r->m)) return MAP_DONE;
    for (page_walk at = page_walk_start(p); page_next_large(&at, &l);) {
        map_step step = make_slot_young(r, &at, l);
        if (step == MAP_MORE || step == MAP_WAITS) return step;
    }
    return MAP_DONE;
}

map_step map_make_young(map *m, uint32_t bucket_index, size_t work) {
    map_size before = map_size_now(m);
    reencoding r = {.m = m, .bucket = bucket_index, .work = work};
    uint32_t n;
    page **pages = bucket_pages(map_bucket(m, bucket_index), &n);
    map_step step = MAP_DONE;
    for (uint32_t i = 0; i < n && step == MAP_DONE; i++) step = make_page_young(&r, pages[i]);
    map_tell_group(m, &before);
    return step;
}
