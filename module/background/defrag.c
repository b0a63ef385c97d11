/* defrag.c: moving blocks together. See defrag.h. */
#include "background/defrag.h"

#include "background/evict.h"
#include "background/freer.h"
#include "background/reencode.h"
#include "background/settle.h"
#include "background/train.h"
#include "core/map/map_defrag.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "server/child.h"
#include "server/clock.h"

#include <string.h>

#define LOOK_US        1000000 /* INFO takes as long as some ten commands */
#define WORTH_BYTES    (2u << 20)
#define WORTH_SHARE(n) ((n) / 32)
#define REST           100 /* times what a pass took of the thread's time */
#define AGAIN          16  /* times that rest, and this: what was in vain may not be any more */
#define AGAIN_US       60000000

/* Between slices, however often the timer comes for the sake of others. */
#define SLICES_US 8000

/* A bucket is begun if so much of the slice is left, or as much as the last one took. */
#define BUCKET_US 500

/* Longer blocks have pages of memory to themselves. */
#define SLAB_BLOCK_MAX 14336

/* Old blocks are freed so many at a time. Beside those that are held others are handed over and
 * being freed: with little memory records might have to go for that. */
#define OLD_BLOCKS        (MEM_RETIRED_MAX / 2)
#define OLD_BYTES         (256u << 10)
#define OLD_SHARE_FULL(n) ((n) / 1024)

/* Bytes of the allocator's slabs, and of those what is in no block. */
typedef struct slabs {
    uint64_t all, holes;
} slabs;

static struct {
    bool running, over; /* over: what has come of it is not known yet */
    maps_cursor cursor;
    mem_retired old; /* blocks that are not used any more */
    size_t old_bytes;
    uint32_t offered, done; /* blocks of the bucket: this time, of which done with in all */
    uint64_t look_us, slice_us, spent_us, bucket_us, rests_until_us, again_us;
    slabs found;   /* when it began */
    uint64_t left; /* bytes in holes from which nothing is to be gained, as the last pass did not */
} pass;

void defrag_start(void) {
    maps_cursor_register(&pass.cursor);
}

/* Nothing where the server's allocator does not tell (of another one than jemalloc the server says
 * what it takes for them). */
static slabs ask(RedisModuleCtx *ctx) {
    int none;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "memory");
    const char *allocator = RedisModule_ServerInfoGetFieldC(info, "mem_allocator");
    bool tells = allocator && strncmp(allocator, "jemalloc", strlen("jemalloc")) == 0;
    uint64_t allocated = RedisModule_ServerInfoGetFieldUnsigned(info, "allocator_allocated", &none);
    uint64_t active = RedisModule_ServerInfoGetFieldUnsigned(info, "allocator_active", &none);
    RedisModule_FreeServerInfo(ctx, info);
    return tells && active > allocated ? (slabs){active, active - allocated} : (slabs){0};
}

/* What is held above the wanted limit is less than old blocks may take. */
static bool memory_is_scarce(void) {
    bool near = maxmemory_held() || maxmemory_server_excess(MAXMEMORY_NEAR, 0) > 0;
    return near && OLD_SHARE_FULL(maxmemory_records_used()) < OLD_BYTES;
}

/* A child would keep what is moved; others are about to make holes, or to fill them: of values that
 * are young there is no end while memory is nearly full. */
static bool must_wait(void) {
    return memory_is_scarce() || child_at_work() || reencode_moves_all() || train_running() ||
           (settle_much() && !evict_near());
}

/* False: those before them are not freed yet. */
static bool hand_over_old(void) {
    if (!freer_give(&pass.old)) return false;
    pass.old_bytes = 0;
    return true;
}

static bool many_old(void) {
    return pass.old.count >= OLD_BLOCKS || pass.old_bytes >= OLD_BYTES;
}

/* A pass that has gained is worth another one: there may be less in all, while records that went
 * meanwhile have left new holes, or fewer holes, while new records took new slabs. */
static void learn(slabs now, uint64_t worth) {
    bool gained = now.all + worth <= pass.found.all || now.holes + worth <= pass.found.holes;
    uint64_t least = now.holes < pass.found.holes ? now.holes : pass.found.holes;
    if (pass.over)
        pass.left = gained ? 0 : least;
    else if (now.holes < pass.left)
        pass.left = now.holes;
    pass.over = false;
}

static void look(RedisModuleCtx *ctx, uint64_t now_us) {
    if (now_us < pass.look_us) return;
    pass.look_us = now_us + LOOK_US;
    slabs now = ask(ctx);
    uint64_t worth = WORTH_BYTES + WORTH_SHARE(maxmemory_records_used());
    learn(now, worth);
    if (now_us >= pass.again_us) pass.left = 0;
    if (now_us < pass.rests_until_us || now.holes <= pass.left + worth) return;
    pass.running = true;
    pass.found = now;
    pass.spent_us = 0;
    maps_cursor_start(&pass.cursor);
}

static void *move_block(void *unused, void *block) {
    (void)unused;
    if (pass.offered++ < pass.done || many_old()) return NULL;
    pass.done++;
    size_t size = ckv.mem.usable(block);
    void *moved = size <= SLAB_BLOCK_MAX ? ckv.mem.alloc(size) : NULL;
    if (!moved) return NULL;
    memcpy(moved, block, size);
    mem_retire(&ckv.mem, &pass.old, block);
    pass.old_bytes += size;
    ckv.stats.defrag_moved++;
    return moved;
}

static void finish(uint64_t now_us) {
    pass.running = false;
    pass.over = true;
    pass.look_us = now_us + LOOK_US; /* all is freed by then, and who freed it has left */
    pass.rests_until_us = now_us + REST * pass.spent_us;
    pass.again_us = now_us + AGAIN * REST * pass.spent_us + AGAIN_US;
}

/* False: there is nothing more to do. */
static bool go_on(void) {
    keyed_map *s;
    uint32_t bucket;
    if (!maps_cursor_next(&pass.cursor, &s, &bucket)) return false;
    pass.offered = 0;
    map_defrag_bucket(s->m, bucket, move_block, NULL);
    if (pass.done < pass.offered)
        maps_cursor_again(&pass.cursor, s, bucket);
    else
        pass.done = 0;
    return true;
}

void defrag_step(RedisModuleCtx *ctx, uint64_t deadline_us) {
    uint64_t before_us, now_us = clock_monotonic_us();
    bool wait = must_wait();
    if (wait || !pass.running) hand_over_old();
    if (wait || now_us < pass.slice_us) return;
    pass.slice_us = now_us + SLICES_US;
    if (!pass.running) look(ctx, now_us);
    while (pass.running && now_us + pass.bucket_us < deadline_us &&
           (!many_old() || hand_over_old())) {
        bool more = go_on();
        before_us = now_us;
        now_us = clock_monotonic_us();
        uint64_t took_us = now_us - before_us;
        pass.bucket_us = took_us < BUCKET_US ? took_us : BUCKET_US;
        pass.spent_us += pass.bucket_us;
        if (!more) finish(now_us);
    }
}

bool defrag_running(void) {
    return pass.running;
}
