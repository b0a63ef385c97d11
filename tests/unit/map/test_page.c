/* One page against a plain list of slots: inserts, replacements, deletes, expiries; page_sane()
 * each time. */
#include "../test.h"
#include "base/stem.h"
#include "map/page.h"

#include <string.h>

#define HASH_SLOTS 400

typedef struct slot {
    uint8_t tag;
    uint32_t len;
    uint8_t byte; /* what the payload is filled with, behind a single's empty key */
    uint16_t code;
    uint8_t uses;
} slot;

static slot model[HASH_SLOTS];
static uint32_t count;
static const uint64_t base = 1000000;

static void fill(uint8_t *payload, const slot *s) {
    memset(payload, s->byte, s->len);
    if (s->tag >= PAGE_TAG_SINGLE && s->tag < PAGE_TAG_HEAD) payload[0] = 0;
}

static void check(const page *p) {
    CHECK(page_sane(p, p->cap) && p->slots == count);
    for (uint32_t i = 0; i < count; i++) {
        const slot *s = &model[i];
        CHECK(page_tags(p)[i] == s->tag && page_len(p, i) == s->len);
        const uint8_t *payload = page_payload(p, i);
        for (uint32_t j = 1; j < s->len; j++) CHECK(payload[j] == s->byte);
        CHECK(page_uses(p, i) == s->uses);
        if (!page_is_head(s->tag)) CHECK(page_code(p, i) == s->code);
    }
}

static uint32_t random_len(void) {
    return 1 + (uint32_t)(test_random() % 40 ? test_random() % 30 : test_random() % 600);
}

static uint16_t random_code(void) {
    return test_random() % 3 ? EXPIRY_NONE : 1234;
}

static void insert_at(page *p, uint32_t at, slot s) {
    bool head = page_is_head(s.tag);
    memmove(&model[at + 1], &model[at], (count - at) * sizeof *model);
    model[at] = s;
    count++;
    fill(page_insert(p, at, s.tag, s.len, head ? EXPIRY_NONE : s.code, base), &s);
}

static bool has_room(const page *p, slot s, uint32_t more) {
    return p->used + page_growth(p, s.len, page_is_head(s.tag), s.code) + more <= p->cap;
}

/* A single, or a group of one, at the end; a group's further members behind its first. */
static void insert(page *p) {
    slot s = {PAGE_TAG_SINGLE + 5, random_len(), (uint8_t)test_random(), random_code(), 0};
    if (count + 2 >= HASH_SLOTS || !has_room(p, s, s.len + 80 + count)) return;
    if (test_random() % 2) {
        insert_at(p, count, s);
        return;
    }
    slot head = {PAGE_TAG_HEAD + 3, 5, 7, EXPIRY_NONE, 0};
    insert_at(p, count, head);
    for (uint8_t suffix = 0; suffix < 3; suffix++) {
        slot member = {suffix, random_len() % 20, (uint8_t)test_random(), random_code(), 0};
        if (count + 1 >= HASH_SLOTS || (suffix && !has_room(p, member, 40 + count))) return;
        insert_at(p, count, member);
    }
}

static void replace(page *p, uint32_t at) {
    slot *s = &model[at];
    uint32_t len = page_is_head(s->tag) ? s->len : random_len();
    if (p->used + page_regrowth(p, at, len) > p->cap) return;
    s->len = len;
    fill(page_replace(p, at, len), s);
}

static void set_code(page *p, uint32_t at) {
    uint16_t code = random_code();
    if (page_is_head(model[at].tag) || p->used + page_expiry_growth(p, code) > p->cap) return;
    model[at].code = code;
    page_set_code(p, at, code, base);
}

static void set_uses(page *p, uint32_t at) {
    if (p->used + page_uses_growth(p) > p->cap) return;
    model[at].uses = test_random() % (PAGE_USES_MAX + 1);
    page_set_uses(p, at, model[at].uses);
}

static void age(page *p) {
    for (uint32_t i = 0; i < count; i++) model[i].uses -= model[i].uses > 0;
    page_age(p);
}

static void delete (page *p, uint32_t at) {
    if (page_is_head(model[at].tag)) return;
    uint32_t removed = page_delete(p, at);
    if (removed == 2) at--;
    memmove(&model[at], &model[at + removed], (count - at - removed) * sizeof *model);
    count -= removed;
}

/* The singles in a row from `first` on, once more, at the end. */
static void insert_run(page *p, uint32_t first) {
    uint64_t block[PAGE_BYTES / 8];
    const page *from = memcpy(block, p, p->cap);
    uint32_t end = first, grown;
    while (end < count && page_tags(p)[end] == PAGE_TAG_SINGLE + 5) end++;
    uint32_t fitting = page_run_fitting(p, from, first, end - first, PAGE_BYTES, &grown);
    CHECK(fitting <= end - first && p->used + grown <= PAGE_BYTES);
    if (p->used + grown > p->cap || count + fitting > HASH_SLOTS) return;
    uint32_t used = p->used;
    page_insert_run(p, count, from, first, fitting);
    CHECK(p->used == used + grown);
    memcpy(&model[count], &model[first], fitting * sizeof *model);
    count += fitting;
}

/* Pages that differ take nothing from one another. */
static void run_of_another_kind(void) {
    uint64_t block[PAGE_BYTES / 8], other[PAGE_BYTES / 8];
    page *p = (page *)block, *from = (page *)other;
    uint32_t grown;
    for (int expiring = 0; expiring < 2; expiring++) {
        page_init(p, PAGE_BYTES, 0);
        page_init(from, PAGE_BYTES, (uint8_t)!expiring);
        memcpy(page_insert(p, 0, PAGE_TAG_SINGLE, 2, EXPIRY_NONE, 0), "\0a", 2);
        memcpy(page_insert(from, 0, PAGE_TAG_SINGLE, 2, expiring ? 7 : EXPIRY_NONE, base), "\0b",
               2);
        CHECK(page_run_fitting(p, from, 0, 1, PAGE_BYTES, &grown) == 0 && grown == 0);
    }
}

static void random_traffic(size_t cap) {
    uint64_t block[PAGE_BYTES / 8];
    page *p = (page *)block;
    page_init(p, cap, 0);
    count = 0;
    for (int step = 0; step < 3000; step++) {
        int what = (int)(test_random() % 10);
        uint32_t at = count ? (uint32_t)(test_random() % count) : 0;
        if (what < 4 || count == 0)
            insert(p);
        else if (what == 4)
            replace(p, at);
        else if (what == 5)
            set_code(p, at);
        else if (what == 6)
            set_uses(p, at);
        else if (what == 7 && test_random() % 20 == 0)
            age(p);
        else if (what == 8 && test_random() % 4 == 0)
            insert_run(p, at);
        else if (step / 500 % 2 || what == 8)
            delete (p, at);
        check(p);
    }
}

/* What page_find() finds: members of the right group, singles, and nothing else. */
static void finding(void) {
    uint64_t block[PAGE_BYTES / 8];
    page *p = (page *)block;
    page_init(p, PAGE_BYTES, 0);
    page_key a = {(const uint8_t *)"a", 1, 1ULL << 56, 42, 2, (const uint8_t *)"st"};
    page_key b = {(const uint8_t *)"b", 1, 1ULL << 56, STEM_NO_SUFFIX, 2, (const uint8_t *)"st"};
    memcpy(page_insert(p, 0, page_single_tag(b.hash, b.suffix), 4, EXPIRY_NONE, 0), "\2stv", 4);
    memcpy(page_insert(p, 1, page_head_tag(a.hash), 2, EXPIRY_NONE, 0), "st", 2);
    memcpy(page_insert(p, 2, 41, 1, EXPIRY_NONE, 0), "x", 1);
    memcpy(page_insert(p, 3, 42, 1, EXPIRY_NONE, 0), "y", 1);
    CHECK(page_sane(p, PAGE_BYTES));
    CHECK(page_find(p, &a) == 3 && page_find(p, &b) == 0 && page_find_head(p, &a) == 1);
    CHECK(page_group_end(p, 1) == 4 && page_find_head(p, &b) == -1);
    a.suffix = 43;
    CHECK(page_find(p, &a) == -1);
    a.suffix = 42;
    a.stem = (const uint8_t *)"sx";
    CHECK(page_find(p, &a) == -1);
}

int main(void) {
    finding();
    run_of_another_kind();
    random_traffic(PAGE_BYTES);
    random_traffic(1024);
    random_traffic(128);
    return test_report("page");
}
