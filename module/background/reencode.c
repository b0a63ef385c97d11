/* reencode.c: bringing every page to the current codec. See reencode.h. */
#include "background/reencode.h"

#include "background/encoders.h"
#include "background/evict.h"
#include "background/lull.h"
#include "background/settle.h"
#include "background/train.h"
#include "core/map/map_reencode.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "server/child.h"
#include "server/clock.h"
#include "server/waiting.h"

#include <stdlib.h>

/* Bytes in one go, which take less than half a millisecond; a longer value is a go of its own. */
#define GO_BYTES (2u << 10)
/* A go is not begun where it would end after the slice (cron.c), unless it is as long as one: that
 * is begun early in it. Each go that is shorter takes 1 in so many off the longest of late. */
#define GO_US_MOST 600
#define GO_FORGET  16
/* Of what may be young that is encoded anew takes so much at most, or values that are written would
 * be encoded at once; and how long it waits for room there. */
#define YOUNG_SHARE(limit) ((limit) / 2)
#define PATIENCE_US        10000000

/* What was encoded fast is written anew when it is one record in so many, in a lull or not; and
 * when it is so many times that, if the last time took less than this share off what was fast. */
#define FAST_ONE_IN      2
#define FAST_ONE_IN_LULL 8
#define IN_VAIN          8
#define WORTH_ONE_IN     64.0
/* Old pages that are not freed yet: about so many bytes each, one in so many of all records'. */
#define OLD_PAGE_BYTES (4u << 10)
#define OLD_ONE_IN     128

/* So many pages that are left are given to the encoders again, as long as each time leaves less
 * than half of them. */
#define MANY_LEFT 64
/* Times that a batch is away, until the next one but in a lull: it is to take a third of a core. It
 * may have been away for other reasons than to be worked on. */
#define REST    2
#define AWAY_US 100000

static struct {
    enum { DONE, GIVING, WAITING, HERE } stage; /* of the pass */
    bool fast_only;                             /* it is for what was encoded fast */
    double fast_share;                          /* of the records, when it began */
    double before, now;                         /* bytes in pages that it has written anew */
    uint64_t patience;                          /* until the next one: 1 or IN_VAIN */
    uint64_t arrivals;                          /* of maps, when it began */
    maps_cursor cursor;
    mem_retired old;      /* pages that are written anew */
    uint64_t left;        /* pages that the encoders could not write anew, or could in vain; */
    uint64_t left_before; /* the last time that all were given to them */
    waiting clients;
    uint64_t young;   /* where their encoding must come to before the clients are answered */
    uint64_t full_us; /* since when there was no room for a large value to be young; 0: there is */
} pass;

static struct {
    recode_batch *open; /* is being filled; NULL: none */
    recode_batch *back; /* is being put back, up to this page; NULL: none */
    uint32_t put;
    unsigned away; /* batches that were given */
    uint64_t given_us, rests_until_us;
} pages;

void reencode_init(void) {
    maps_cursor_register(&pass.cursor);
    pass.patience = 1;
}

static void note_left(uint64_t n) {
    if (pass.stage != HERE) pass.left += n;
}

static void end_batch(recode_batch *b) {
    note_left(b->left);
    recode_end(b, &ckv.shared);
    free(b);
}

/* What was begun may be for a codec of before. */
static void start(bool fast_only, bool aside) {
    if (pages.open) end_batch(pages.open);
    pages.open = NULL;
    pass.stage = aside ? GIVING : HERE;
    pass.left = aside ? 0 : UINT64_MAX;
    pass.left_before = UINT64_MAX;
    pass.fast_only = fast_only;
    pass.before = pass.now = 0;
    if (aside) ckv.shared.codecs.fast = 0;
    pass.arrivals = maps_arrivals();
    maps_cursor_start(&pass.cursor);
}

void reencode_start(void) {
    start(false, encoders_there());
}

static void finish(void) {
    bool vain = (pass.before - pass.now) * WORTH_ONE_IN < pass.before * pass.fast_share;
    if (pass.fast_only && pass.before > 0) pass.patience = vain ? IN_VAIN : 1;
    pass.fast_only = false;
    pass.stage = DONE;
    pass.young = settle_mark(); /* the pass has made some itself */
    mem_free_retired(&ckv.mem, &pass.old);
    codecs_remove_unused(&ckv.shared.codecs);
}

/* When all is of the current codec that was there when the last client came, and what was young
 * when that was so is encoded. */
static void answer(void) {
    if (pass.clients.count == 0 || pass.stage != DONE || !settle_has_come_to(pass.young)) return;
    waiting_answer(&pass.clients, NULL);
}

/* ---- what was encoded fast ------------------------------------------------------------------- */

/* A training is going to have all written anew, a child keeps what is, and who waits does not wait
 * for this. */
static void start_if_many_are_fast(void) {
    uint64_t fast = ckv.shared.codecs.fast, records = maps_totals().totals.records;
    bool many = fast * (lull() ? FAST_ONE_IN_LULL : FAST_ONE_IN) > records * pass.patience;
    if (!many || reencode_awaited() || child_at_work() || train_running() || !encoders_there())
        return;
    pass.fast_share = fast < records ? (double)fast / (double)records : 1;
    start(true, true);
}

static bool takes_its_time(void) {
    return pass.fast_only && !lull();
}

/* ---- a go ------------------------------------------------------------------------------------ */

static struct {
    uint64_t began_us;   /* this thread's time */
    uint64_t longest_us; /* what the longest of late took of that */
} go;

static void forget_long_go(void) {
    go.longest_us -= go.longest_us / GO_FORGET;
}

/* Whether the next one will fit; it begins then. `now_us` becomes now. */
static bool go_begin(uint64_t deadline_us, uint64_t *now_us) {
    uint64_t expected_us = go.longest_us < GO_US_MOST ? go.longest_us : GO_US_MOST;
    *now_us = clock_monotonic_us();
    if (*now_us + expected_us >= deadline_us) {
        forget_long_go();
        return false;
    }
    go.began_us = clock_thread_us();
    return true;
}

static void go_end(void) {
    uint64_t took_us = clock_thread_us() - go.began_us;
    if (took_us > go.longest_us)
        go.longest_us = took_us;
    else
        forget_long_go();
}

/* ---- large values, which become young -------------------------------------------------------- */

/* Whether they may, for the encoders: not where memory is short, nor where these have not followed
 * for a while, until they have; but during a training what is young waits for what is learned. */
static bool may_make_young(uint64_t now_us) {
    bool little = ckv.shared.young.bytes <= YOUNG_SHARE(ckv.shared.young.limit) / 2;
    if (little || train_running()) pass.full_us = 0;
    return !evict_near() && (!pass.full_us || now_us - pass.full_us < PATIENCE_US);
}

static void limit_moved(uint64_t now_us) {
    young_state *young = &ckv.shared.young;
    young->limit_moved = may_make_young(now_us) ? YOUNG_SHARE(young->limit) : 0;
}

static void note_wait(map_step step, uint64_t now_us) {
    if (step == MAP_WAITS && !pass.full_us) pass.full_us = now_us;
}

/* ---- by way of the encoders ------------------------------------------------------------------ */

/* They are freed together, lest the next copies go where they were; but to who makes room they are
 * data. */
static void free_many_old(void) {
    if ((uint64_t)pass.old.count * OLD_PAGE_BYTES * OLD_ONE_IN > maxmemory_records_used())
        mem_free_retired(&ckv.mem, &pass.old);
}

static void put_back(const recode_batch *b, map *m, uint64_t now_ticks) {
    if (recode_put(b, pages.put, m, now_ticks, &pass.old)) {
        pass.before += recode_used_before(b, pages.put);
        pass.now += recode_used_now(b, pages.put);
        free_many_old();
    } else {
        note_left(1);
    }
}

/* Puts back what the encoders have written anew, until a time. */
static void collect(uint64_t now_ticks, uint64_t deadline_us) {
    while (pages.back || (pages.back = encoders_take_pages())) {
        for (recode_batch *b = pages.back; pages.put < b->count; pages.put++) {
            if (clock_monotonic_us() >= deadline_us) return;
            map *m = maps_of_owner(b->items[pages.put].owner);
            if (m) put_back(b, m, now_ticks);
        }
        end_batch(pages.back);
        uint64_t now_us = clock_monotonic_us(), away_us = now_us - pages.given_us;
        pages.rests_until_us = now_us + REST * (away_us < AWAY_US ? away_us : AWAY_US);
        pages.back = NULL;
        pages.put = 0;
        pages.away--;
    }
}

/* In libc's memory: what is taken for a moment is not to be made room for. */
static bool open_batch(void) {
    if (pages.open) return true;
    unsigned most = takes_its_time() ? 1 : ENCODERS_PAGES_AWAY;
    if (pages.away >= most || !(pages.open = malloc(sizeof *pages.open))) return false;
    recode_begin(pages.open, &ckv.shared);
    return true;
}

static void give_batch(void) {
    if (pages.open && pages.open->count > 0) {
        encoders_give_pages(pages.open);
        pages.given_us = clock_monotonic_us();
        pages.away++;
    } else if (pages.open) {
        end_batch(pages.open);
    }
    pages.open = NULL;
}

/* What a bucket's pages point to is to be the same in every codec. */
static map_step make_young(map *m, uint32_t bucket, uint64_t now_us) {
    if (pass.fast_only) return MAP_DONE;
    limit_moved(now_us);
    map_step step = map_make_young(m, bucket, GO_BYTES);
    note_wait(step, now_us);
    return step;
}

/* Takes a bucket into the batch, or a step towards that. False: nothing can be done now. */
static bool take_bucket(keyed_map *s, uint32_t bucket, uint64_t now_us) {
    map_step step = make_young(s->m, bucket, now_us);
    if (step == MAP_DONE && recode_fill(pages.open, s->m, bucket)) return true;
    maps_cursor_again(&pass.cursor, s, bucket);
    if (step != MAP_MORE) give_batch(); /* it is full, or would wait */
    return step != MAP_WAITS;
}

/* Gives the encoders what is to be written anew, until a time; as long as there are any, and memory
 * for batches. */
static void distribute(uint64_t deadline_us) {
    keyed_map *s;
    uint32_t bucket;
    bool more = true;
    if (takes_its_time() && clock_monotonic_us() < pages.rests_until_us) return;
    bool can = encoders_there() && (open_batch() || pages.away > 0);
    for (uint64_t now_us; more && go_begin(deadline_us, &now_us); go_end()) {
        if (can && !open_batch()) return;
        if (!can || !maps_cursor_next(&pass.cursor, &s, &bucket)) {
            if (can) give_batch();
            pass.stage = WAITING;
            return;
        }
        more = take_bucket(s, bucket, now_us);
    }
}

/* The pass goes on to its end here. If there is nobody to give what was begun, all is left; of what
 * was encoded fast nothing has to be done. */
static void begin_here(void) {
    bool begun = pages.open != NULL;
    if (begun) end_batch(pages.open);
    if (begun) pass.left = UINT64_MAX;
    pages.open = NULL;
    if (pass.fast_only) {
        finish();
        return;
    }
    pass.stage = HERE;
    maps_cursor_start(&pass.cursor);
}

/* Pages were written to while they were away. */
static bool gives_again(void) {
    if (pass.fast_only || pass.left < MANY_LEFT || pass.left >= pass.left_before / 2) return false;
    return encoders_there();
}

static void end_round(void) {
    if (!gives_again()) {
        begin_here();
        return;
    }
    pass.left_before = pass.left;
    pass.left = 0;
    pass.stage = GIVING;
    maps_cursor_start(&pass.cursor);
}

/* ---- here ------------------------------------------------------------------------------------ */

/* False: nothing can be done now. If memory runs out or a record is damaged, the codec of what is
 * left stays in use. */
static bool go_on(keyed_map *s, uint32_t bucket, uint64_t now_ticks, uint64_t now_us) {
    limit_moved(now_us);
    map_step step = map_reencode(s->m, bucket, now_ticks, GO_BYTES, &pass.old);
    free_many_old();
    note_wait(step, now_us);
    if (step == MAP_MORE || step == MAP_WAITS)
        maps_cursor_again(&pass.cursor, s, map_bucket_or_last(s->m, bucket));
    return step != MAP_WAITS;
}

/* Whether maps have come back since the last pass, while it had to leave some old codec in use. */
static bool worth_another(void) {
    const codecs *all = &ckv.shared.codecs;
    bool old = codecs_count(all) > (codecs_current_id(all) != CODEC_RAW);
    return old && maps_arrivals() != pass.arrivals;
}

/* A child that saves keeps the pages that are written anew, up to all of them. Records that must go
 * for want of memory are worth more, and so is who waits. */
static bool waits_for_child(void) {
    return child_at_work() && (pass.fast_only || (!reencode_awaited() && !evict_near()));
}

static void go_on_here(uint64_t now_ticks, uint64_t deadline_us) {
    keyed_map *s;
    uint32_t bucket;
    bool more = true;
    for (uint64_t now_us; more && go_begin(deadline_us, &now_us); go_end()) {
        if (maps_cursor_next(&pass.cursor, &s, &bucket)) {
            more = go_on(s, bucket, now_ticks, now_us);
            continue;
        }
        if (pages.away == 0) finish();
        more = false;
    }
}

void reencode_step(uint64_t deadline_us) {
    uint64_t now_ticks = expiry_ticks(clock_now_ms());
    if (waits_for_child()) {
        mem_free_retired(&ckv.mem, &pass.old);
        return;
    }
    if (pass.stage == DONE && worth_another()) reencode_start();
    if (pass.stage == DONE) start_if_many_are_fast();
    collect(now_ticks, deadline_us);
    if (pass.stage == GIVING) distribute(deadline_us);
    if (pass.stage == WAITING && pages.away == 0) end_round();
    if (pass.stage == HERE) go_on_here(now_ticks, deadline_us);
    answer();
}

bool reencode_running(void) {
    return pass.stage != DONE;
}

bool reencode_moves_all(void) {
    return pass.stage != DONE && !pass.fast_only;
}

uint64_t reencode_pages_ahead(void) {
    if (pass.stage == DONE) return 0;
    uint64_t ahead = maps_cursor_pages_ahead(&pass.cursor);
    uint64_t most = pass.stage == HERE ? pass.left : pass.left_before;
    if (ahead > most) ahead = most;
    return pass.stage == HERE ? ahead : ahead + pass.left + pages.away * RECODE_PAGES;
}

int reencode_now(RedisModuleCtx *ctx) {
    if (waiting_add(ctx, &pass.clients)) reencode_start();
    return REDISMODULE_OK;
}

bool reencode_awaited(void) {
    return pass.clients.count > 0;
}
