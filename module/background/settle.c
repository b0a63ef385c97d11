/* settle.c: encoding what is young. See settle.h. */
#include "background/settle.h"

#include "background/encoders.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "server/clock.h"
#include "server/machine.h"

#include <stdlib.h>

/* How long a value must have been left alone. */
#define AGE_MS 1000
/* Of the limit: from here on values are encoded at any age. */
#define FULL(limit) ((limit) / 4 * 3)

/* Of a limit of memory that refuses writes: so much must be free for values to be young. */
#define REFUSED_SHARE 0.1
/* The limit where none is set: a share of the memory that there may be, between these; where
 * nothing says how much there may be, a lesser one of the machine's, which others use, too. */
#define AUTO_SHARE(bytes)         ((bytes) / 16)
#define AUTO_MIN                  (256ULL << 10)
#define AUTO_MAX                  (512ULL << 20)
#define AUTO_MACHINE_SHARE(bytes) ((bytes) / 128)
#define AUTO_MACHINE_MIN          (64ULL << 20)

/* Batches under way for each thread: enough for it until the timer comes by again. Their copies
 * take at most a share of what young values may. */
#define JOBS_PER_THREAD 8
#define COPIES(limit)   ((limit) / 8 > COPIES_MIN ? (limit) / 8 : COPIES_MIN)
#define COPIES_MIN      (16u << 10)
/* What filling a batch takes, at most, and swapping in what threads have done. */
#define FILL_US    200
#define COLLECT_US 100
/* Maps that are passed over before the time is looked at. */
#define PASSED_AT_ONCE 64
/* How long it is believed that there is nothing to encode yet. */
#define NOTHING_US 100000
/* What the main thread encodes itself in one go. Bytes. */
#define OWN_BYTES (8u << 10)
/* Less freed by that is hardly anything: the values don't compress. */
#define HARDLY_BYTES (OWN_BYTES / 8)
/* And no longer value than this, as long as there are threads. Bytes. */
#define OWN_LONGEST (16u << 10)
/* Hot values: how long one may be left alone, how many slots the hand goes over between looks at
 * the time, what is dropped at once. */
#define HOT_ROUND_US 10000000
#define HOT_SLOTS    256
#define HOT_AT_ONCE  (64u << 10)

static unsigned under_way; /* batches that are waiting, being encoded, or done */
static size_t copies;      /* their bytes */

static uint64_t count(void) {
    return maps_totals().totals.young + maps_totals_unserved().totals.young;
}

static bool is_full(void) {
    return ckv.shared.young.bytes > FULL(ckv.shared.young.limit);
}

/* Fills a batch. Where nothing old was found among all there is, it is not looked for again soon.
 */
static void fill(young_batch *b, young_choice which, uint64_t deadline_us) {
    static uint64_t nothing_until_us;
    uint64_t now_ticks = expiry_ticks(clock_now_ms());
    uint32_t maps = ckv.shared.young.maps, seen = 0, looked;
    bool hurry = which.all || is_full();
    if (!hurry && clock_monotonic_us() < nothing_until_us) return;
    do {
        looked = young_batch_fill(b, &ckv.shared, which, now_ticks, PASSED_AT_ONCE);
        seen += looked;
    } while (looked == PASSED_AT_ONCE && seen < maps && clock_monotonic_us() < deadline_us);
    if (!hurry && b->count == 0 && seen >= maps)
        nothing_until_us = clock_monotonic_us() + NOTHING_US;
}

static void swap_in(const young_batch *b, const young_item *item) {
    map *m = maps_of_owner(item->owner);
    if (m) map_settle(m, b, item, expiry_ticks(clock_now_ms()));
}

/* In libc's memory, as the workspaces: what is taken for a moment is not to be made room for. */
static encoder_job *new_job(size_t bytes, codec_pace pace, young_choice which,
                            uint64_t deadline_us) {
    encoder_job *j = malloc(sizeof *j);
    if (!j) return NULL;
    j->swapped = 0;
    young_batch_begin(&j->batch, &mem_libc, &ckv.shared, bytes, pace);
    fill(&j->batch, which, deadline_us);
    j->longest = 0;
    for (uint32_t i = 0; i < j->batch.count; i++)
        if (j->batch.items[i].raw_len > j->longest) j->longest = j->batch.items[i].raw_len;
    under_way++;
    copies += sizeof *j + j->batch.cap;
    return j;
}

static void end_job(encoder_job *j) {
    under_way--;
    copies -= sizeof *j + j->batch.cap;
    young_batch_end(&j->batch, &ckv.shared);
    free(j);
}

/* Swaps in what is done until a time. False: there is more. */
static bool collect(uint64_t deadline_us) {
    static encoder_job *current;
    while (current || (current = encoders_take_done())) {
        while (current->swapped < current->batch.count) {
            if (clock_monotonic_us() >= deadline_us) return false;
            swap_in(&current->batch, &current->batch.items[current->swapped++]);
        }
        end_job(current);
        current = NULL;
    }
    return true;
}

/* Gives the threads what there is to do: in the cheapest way, as long as they can follow. */
static void distribute(young_choice which, uint64_t deadline_us) {
    codec_pace pace = is_full() ? CODEC_FAST : CODEC_CHEAPEST;
    size_t most = COPIES(ckv.shared.young.limit);
    size_t bytes = most < YOUNG_BATCH_BYTES ? most : YOUNG_BATCH_BYTES;
    while (under_way < ckv.config.encode_threads * JOBS_PER_THREAD && copies < most &&
           clock_monotonic_us() + FILL_US < deadline_us) {
        encoder_job *j = new_job(bytes, pace, which, deadline_us);
        if (!j) return;
        if (j->batch.count == 0) {
            end_job(j);
            return;
        }
        encoders_give(j);
    }
}

/* What no thread has begun with. Long values, which others should not have to wait for, are left to
 * the threads, if there are any. NULL: there is nothing else. */
static encoder_job *job_for_here(size_t bytes) {
    bool any;
    size_t longest = encoders_there() ? OWN_LONGEST : SIZE_MAX;
    encoder_job *j = encoders_take_waiting(longest, &any);
    if (any || !ckv.shared.young.ring) return j;
    j = new_job(bytes, CODEC_FAST, (young_choice){UINT64_MAX, true}, UINT64_MAX);
    if (!j || j->longest <= longest) return j;
    encoders_give(j);
    return NULL;
}

static encoder_job *begun_here;

/* Encodes and swaps in so many bytes. */
static void encode_here(size_t bytes) {
    static codec_workspace work;
    static bool ready;
    if (!ready) ready = workspace_init(&work, &mem_libc);
    if (ready && !begun_here) begun_here = job_for_here(bytes);
    if (!begun_here) return;
    encoder_job *j = begun_here;
    j->batch.effort.pace = CODEC_FAST;
    for (size_t done = 0; done < bytes && j->swapped < j->batch.count; j->swapped++) {
        young_batch_encode(&j->batch, j->swapped, &work);
        swap_in(&j->batch, &j->batch.items[j->swapped]);
        done += j->batch.items[j->swapped].raw_len;
    }
    workspace_trim(&work);
    if (j->swapped < j->batch.count) return;
    end_job(j);
    begun_here = NULL;
}

/* The rest of what was begun here comes back as it is: nothing may press any more. */
static void put_back(void) {
    if (begun_here) encoders_done(begun_here);
    begun_here = NULL;
}

static void end_counted(void) {
    for (uncounted_batch *b; (b = encoders_take_counted()) != NULL;) uncounted_end(&ckv.shared, b);
}

/* Ends what is counted, and has more counted. */
static void exchange(void) {
    end_counted();
    if (!ckv.shared.uncounted.open) return;
    if (!encoders_there()) {
        uncounted_count_out(&ckv.shared);
        return;
    }
    uncounted_batch *b = uncounted_take(&ckv.shared);
    if (b) encoders_give_uncounted(b);
}

static uint64_t stored_bytes(void) {
    map_totals t = maps_totals().totals;
    return map_record_bytes(&t);
}

/* The hand of the hot values goes round in a while, or as fast as it can where none are to be kept.
 */
static void step_hot(uint64_t deadline_us, uint64_t stored) {
    static uint64_t last_us;
    hot_values *hot = &ckv.shared.hot;
    uint64_t now_us = clock_monotonic_us();
    uint64_t slots = hot_slots(hot) * (now_us - last_us) / HOT_ROUND_US;
    if (slots > 0 || !hot->slots) last_us = now_us;
    map_shared_keep_hot(&ckv.shared, stored);
    while (hot->limit > 0 && hot->bytes > hot->limit && clock_monotonic_us() < deadline_us)
        if (hot_drop(hot, HOT_AT_ONCE) == 0) break;
    if (hot->limit == 0) slots = UINT64_MAX;
    while (slots > 0 && hot->slots && clock_monotonic_us() < deadline_us) {
        uint32_t some = slots < HOT_SLOTS ? (uint32_t)slots : HOT_SLOTS;
        hot_pass(hot, some);
        slots -= some;
    }
}

size_t settle_some(void) {
    uint64_t before = maxmemory_records_used();
    size_t dropped = hot_drop(&ckv.shared.hot, HOT_AT_ONCE);
    if (dropped == 0) dropped = map_shared_shrink(&ckv.shared);
    if (dropped > 0) return dropped;
    if (count() == 0) return 0;
    collect(clock_monotonic_us() + COLLECT_US);
    if (maxmemory_records_used() >= before) encode_here(OWN_BYTES);
    uint64_t after = maxmemory_records_used();
    return before > after + HARDLY_BYTES ? before - after : 0;
}

/* While the first codec is learned the processor is worth more to that: what is encoded without one
 * takes many times the room. */
static bool may_wait(void) {
    return codecs_current_id(&ckv.shared.codecs) == CODEC_RAW || !is_full();
}

static bool much;

void settle_step(uint64_t deadline_us, settle_when when) {
    settle_configure();
    exchange();
    step_hot(deadline_us, when == SETTLE_ALL ? 0 : stored_bytes());
    put_back();
    much = !collect(deadline_us);
    bool hurry = when == SETTLE_ALL || ckv.shared.young.limit == 0;
    if (much || count() == 0 || (when == SETTLE_LATER && !hurry && may_wait())) return;
    uint64_t by = expiry_ticks(is_full() ? clock_now_ms() : clock_now_ms() - AGE_MS);
    if (encoders_there()) {
        distribute(hurry ? (young_choice){UINT64_MAX, true} : (young_choice){by, false},
                   deadline_us);
        much = is_full() || hurry;
    } else {
        while (clock_monotonic_us() < deadline_us && count() > 0) settle_some();
        much = count() > 0;
    }
}

bool settle_running(void) {
    return under_way > 0 || uncounted_any(&ckv.shared) || hot_is_too_much(&ckv.shared.hot);
}

bool settle_much(void) {
    return much;
}

/* What is young is encoded in its order, or is gone: so what counts is how many have left. */
uint64_t settle_mark(void) {
    return ckv.shared.young.left + count();
}

/* Where a file was damaged a record may not be found by its key: it stays young. */
static bool is_idle(void) {
    return under_way == 0 && !ckv.shared.young.ring;
}

bool settle_has_come_to(uint64_t mark) {
    if (ckv.shared.hot.slots) return false;
    return ckv.shared.young.left >= mark || count() == 0 || is_idle();
}

/* ---- settings -------------------------------------------------------------------------------- */

static uint64_t clamp(uint64_t bytes, uint64_t least, uint64_t most) {
    if (bytes < least) return least;
    return bytes < most ? bytes : most;
}

static uint64_t automatic_limit(void) {
    uint64_t server = maxmemory_now()->wanted_limit, own = (uint64_t)ckv.config.maxmemory;
    uint64_t limit = own > 0 && (server == 0 || own < server) ? own : server;
    if (limit > 0) return clamp(AUTO_SHARE(limit), AUTO_MIN, AUTO_MAX);
    return clamp(AUTO_MACHINE_SHARE(machine_bytes()), AUTO_MACHINE_MIN, AUTO_MAX);
}

/* Where writes are refused when memory is full, nothing is young any more a while before. */
static bool writes_may_fail(void) {
    const maxmemory_settings *now = maxmemory_now();
    return now->limited && !now->evicts && maxmemory_excess(REFUSED_SHARE, 0) > 0;
}

void settle_configure(void) {
    uint64_t wanted = (uint64_t)ckv.config.young_memory;
    unsigned threads = (unsigned)ckv.config.encode_threads;
    bool none = threads == 0 || writes_may_fail();
    ckv.shared.young.limit = none ? 0 : wanted > 0 ? wanted : automatic_limit();
    ckv.shared.uncounted.exchange = threads > 0 ? exchange : NULL;
    if (threads == 0) uncounted_count_out(&ckv.shared);
    encoders_want(threads);
}
