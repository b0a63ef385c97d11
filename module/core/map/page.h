/*
 * page.h: a packed block of records, at most 3584 bytes.
 *
 *      0      2      4       6       7       8          14 if EXPIRY
 *      +------+------+-------+-------+-------+----------+
 *      | cap  | used | slots | codec | flags | base     |
 *      +------+------+-------+-------+-------+----------+
 *      | tags: 1 byte a slot                            |
 *      | lens: 1 byte a slot, 2 if WIDE                 |
 *      | codes: 2 bytes a slot that is no head, EXPIRY  |
 *      | uses: 2 bits a slot, low bits first, if USES   |
 *      +------------------------------------------------+
 *      | free: cap - used bytes                         |
 *      +------------------------------------------------+
 *      | payload of slot n-1 | ... | payload of slot 0  |
 *      +------------------------------------------------+ cap
 *
 * Integers are little-endian. The arrays grow up, the payloads grow down, so that adding a
 * record touches both ends of the free space and not the whole page. A payload is found by
 * adding up the lens before it.
 *
 * A slot is one of three things, told by its tag:
 *
 *      tag 0..99     member   a record of the group whose head comes before it; the tag is
 *                             the last two digits of its key
 *                             payload: [encoded value]
 *      tag 100..177  single   a record whose key has no suffix; the tag is a fingerprint
 *                             payload: [length][encoded key][encoded value]
 *                             or, for a record that is large (large.h), whatever its key:
 *                             [255][pointer, 8 bytes]
 *      tag 178..255  head     the stem that the members behind it share, up to the next
 *                             tag over 99; the tag is a fingerprint of the stem
 *                             payload: [encoded stem]
 *
 * So a byte says which neighbour of a stem a record is, and finding it is a memchr over tags.
 * How keys and values are encoded is the business of the codec that the page names (codec.h).
 * `base` is the time, in ticks of 1/512 s, that the expiry codes are read against (expiry.h).
 * `uses` counts how often a record was used lately, up to 3, for eviction (map_evict.h). Where
 * nothing is evicted, nobody counts, and no page has them. FAST is for who writes pages anew
 * (map_recode.h); files do not have it.
 *
 * The functions here move bytes within one page. They never allocate: whoever owns the page asks
 * first by how much it will grow (page_growth() and the like) and gives it that room.
 *
 * All of it, for `CSET user:1 Ada EX 60` at 1,700,000,000,000 ms, where nothing has been learned
 * yet and the secret of the map's hash is {1, 2}:
 *
 *      40 00 1e 00 01 00 00 02    cap 64, used 30, 1 slot, codec 0, EXPIRY
 *      00 00 e2 a7 ca 00          base: 870,400,000,000 ticks, which is now
 *      89                         tag: a single
 *      0c                         len: 12 bytes
 *      81 27                      code: unit 2 (1/32 s), count 1921: 1 ms after 60 s, rounded up
 *      ..                         free, 34 bytes
 *      07 ff 75 73 65 72 3a 31    length of the encoded key, raw, "user:1"
 *      ff 41 64 61                raw, "Ada"
 */
#ifndef CKV_PAGE_H
#define CKV_PAGE_H

#include "base/expiry.h"
#include "base/mem.h"
#include "base/stem.h"
#include "map/large.h"

#include <stdbool.h>
#include <stdint.h>

/* A size class of which jemalloc cuts eight out of seven pages of memory. Of 4096 bytes it makes
 * one by one, each with 128 bytes for itself: 3% of the RSS. */
#define PAGE_BYTES       3584
#define PAGE_PAYLOAD_MAX 1024 /* longer records live in an allocation of their own */
#define PAGE_KEY_MAX     254  /* encoded key or stem; with longer ones the record is large */

#define PAGE_TAG_SINGLE  100
#define PAGE_TAG_HEAD    178
#define PAGE_LARGE       255 /* first payload byte of a single that points elsewhere */
#define PAGE_LARGE_BYTES (1 + sizeof(void *))

#define PAGE_WIDE   1
#define PAGE_EXPIRY 2
#define PAGE_LARGES 4 /* may hold records that are large */
#define PAGE_USES   8
#define PAGE_FAST   16 /* may hold values that were encoded fast */

#define PAGE_USES_MAX 3

#define PAGE_BASE_BYTES 6 /* of the base, if EXPIRY */

typedef struct page {
    uint16_t cap, used, slots;
    uint8_t codec, flags;
    uint8_t body[];
} page;

#define PAGE_HEADER_BYTES ((uint16_t)sizeof(page))

_Static_assert(sizeof(page) == 8, "the header of a page, in memory and in files");
_Static_assert(PAGE_LARGE_BYTES == 9, "the payload of a large record, in memory and in files");

/* What is looked for: a key, split, and its stem as the page's codec encodes it. */
typedef struct page_key {
    const uint8_t *key; /* as the user wrote it */
    size_t key_len;
    uint64_t hash;       /* of the stem */
    uint8_t suffix;      /* 0..99 or STEM_NO_SUFFIX */
    uint8_t stem_len;    /* encoded */
    const uint8_t *stem; /* encoded; NULL if it is longer than PAGE_KEY_MAX */
} page_key;

/* Of a record that is no member: neighbours that are large have different ones, or a look-up would
 * go through all of them. In files they have that of their stem, as if they had no suffix. */
static inline uint8_t page_single_tag(uint64_t hash, uint8_t suffix) {
    const uint32_t tags = PAGE_TAG_HEAD - PAGE_TAG_SINGLE;
    uint32_t tag = (uint32_t)((hash >> 56) * tags >> 8);
    if (suffix != STEM_NO_SUFFIX) tag = (tag + suffix) % tags;
    return (uint8_t)(PAGE_TAG_SINGLE + tag);
}

static inline uint8_t page_head_tag(uint64_t hash) {
    return (uint8_t)(PAGE_TAG_HEAD + ((hash >> 56) * (256 - PAGE_TAG_HEAD) >> 8));
}

static inline uint8_t *page_tags(const page *p) {
    return (uint8_t *)p->body + (p->flags & PAGE_EXPIRY ? PAGE_BASE_BYTES : 0);
}
static inline bool page_is_member(uint8_t tag) {
    return tag < PAGE_TAG_SINGLE;
}
static inline bool page_is_head(uint8_t tag) {
    return tag >= PAGE_TAG_HEAD;
}

/* Asks for the cache lines that a look-up will touch: header and arrays, which lie at the front,
 * and the first stem, at the end of a full page. */
static inline void page_prefetch(const page *p) {
    for (int line = 0; line < 6; line++) __builtin_prefetch((const char *)p + 64 * line);
    __builtin_prefetch((const char *)p + PAGE_BYTES - 64);
}

/* An empty page in a block of `cap` bytes (at most PAGE_BYTES). */
void page_init(page *p, size_t cap, uint8_t codec);

/* Payload length of a slot, bytes. */
uint32_t page_len(const page *p, uint32_t slot);
uint8_t *page_payload(const page *p, uint32_t slot);

/* A way over all slots of a page that stays as it is. What the functions here find by counting from
 * the first slot is at hand. */
typedef struct page_walk {
    page *p;
    uint32_t slot; /* from here on: of the slot that the way has come to */
    uint8_t tag;
    uint16_t code; /* EXPIRY_NONE for a head */
    uint32_t len;
    const uint8_t *payload;
    uint32_t next, records;
} page_walk;

page_walk page_walk_start(page *p);
/* False at the end. */
bool page_walk_next(page_walk *w);

/* Goes on to the next slot of a large record; *l is what its payload points to, NULL in a page that
 * comes from a file. False at the end. */
bool page_next_large(page_walk *w, large **l);
/* Lets the large record's slot point elsewhere, and gives it a tag. */
void page_set_large(const page_walk *w, large *l, uint8_t tag);

/* Slots that are no heads. */
uint32_t page_records(const page *p);

/* The encoded value of a record that is not large. */
const uint8_t *page_value(const page *p, uint32_t slot, uint32_t *len);

/* Where a record that is large lies, NULL for any other slot. */
large *page_large(const page *p, uint32_t slot);

/* How many records are large, about: others may be as long as what points to one. */
uint32_t page_larges(const page *p);

/* The record of a key: its slot, or -1. */
int page_find(const page *p, const page_key *key);

/* The head of the group that a key with a suffix belongs to, or -1. */
int page_find_head(const page *p, const page_key *key);

/* The slot behind the last member of a group. */
uint32_t page_group_end(const page *p, uint32_t head);

/* Bytes by which the page grows if a slot with a payload of `len` bytes is added; `code` is its
 * expiry (EXPIRY_NONE for a head). */
uint32_t page_growth(const page *p, uint32_t len, bool is_head, uint16_t code);

/* Makes a slot before slot `at`; the page has room for page_growth(). Returns its payload, to be
 * filled by the caller. `code`, ignored for heads, is relative to `base`, which becomes the page's
 * if that has none yet, or if the code means something else next to it. */
uint8_t *page_insert(page *p, uint32_t at, uint8_t tag, uint32_t len, uint16_t code, uint64_t base);

/* How many of the slots [first, first + count) of another page, none of them a head, this page can
 * take with no more than copying them: as many as it could have room for within `most` bytes, none
 * if the two pages differ in codec, flags (but FAST) or base. `grown` is then what they take,
 * bytes. */
uint32_t page_run_fitting(const page *p, const page *from, uint32_t first, uint32_t count,
                          uint32_t most, uint32_t *grown);

/* Copies so many slots before slot `at`; the page has the room that they take. */
void page_insert_run(page *p, uint32_t at, const page *from, uint32_t first, uint32_t count);

/* Bytes by which the page grows (or shrinks, if negative) if the slot's payload becomes `len`. */
int page_regrowth(const page *p, uint32_t slot, uint32_t len);

/* Gives the slot's payload another length; what it held is lost. Returns the payload. */
uint8_t *page_replace(page *p, uint32_t slot, uint32_t len);

/* Takes a slot out; with the last member of a group goes its head. Returns slots removed. */
uint32_t page_delete(page *p, uint32_t slot);

/* Expiry of a record's slot. page_set_code needs the room of page_expiry_growth(), and treats the
 * base as page_insert() does. */
uint16_t page_code(const page *p, uint32_t slot);
uint64_t page_base(const page *p);
uint32_t page_expiry_growth(const page *p, uint16_t code);
void page_set_code(page *p, uint32_t slot, uint16_t code, uint64_t base);
/* The first record at or after `slot` that has expired by then; the number of slots if none. */
uint32_t page_next_expired(const page *p, uint32_t slot, int64_t now_ms);

/* How often a record was used lately. page_set_uses needs the room of page_uses_growth(). */
uint8_t page_uses(const page *p, uint32_t slot);
uint32_t page_uses_growth(const page *p);
void page_set_uses(page *p, uint32_t slot, uint8_t uses);
/* Takes one from every count that is not 0 yet. */
void page_age(page *p);
/* Whether two pages are the same, byte by byte, but for these counts. */
bool page_same_but_uses(const page *a, const page *b);

/* Moves the base: every code is written again as seen from there, past ones become EXPIRY_PAST. */
void page_rebase(page *p, uint64_t base);

/* The latest base up to `base` from which nothing in the page has passed. */
uint64_t page_base_before_all(const page *p, uint64_t base);

/* Bytes before the free space: header, base and arrays. */
uint32_t page_front_bytes(const page *p);

/* Moves the payloads when the block that holds the page has become `cap` bytes (realloc): before
 * it shrinks, after it has grown. */
void page_set_cap(page *p, size_t cap);

/* Every invariant of the format; `bytes` is what is known to be readable. True for any page made
 * by these functions, safe to call on any bytes. */
bool page_sane(const page *p, size_t bytes);

#endif
