/* defrag.c: moving blocks together. See defrag.h. */
#include "background/defrag.h"

#include "background/evict.h"
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
#define REST           10 /* times what a pass took */

/* Longer blocks have pages of memory to themselves. */
#define SLAB_BLOCK_MAX 14336

/* Old blocks are freed many at a time, size class by size class: what the allocator's cache for a
 * thread has room for (20 blocks, 200 where they are small) it hands out again wherever it lies. */
#define OLD_BYTES   (192u << 10) /* of a class */
#define CLASSES_LOG 2            /* size classes in a doubling */
#define CLASSES     (14 << CLASSES_LOG)

/* Of what records take: what all old blocks take at most, the same while memory is nearly full and
 * records might have to go for it. With less a pass would do nothing but shuffle. */
#define OLD_SHARE(n)      ((n) / 128)
#define OLD_SHARE_FULL(n) ((n) / 1024)
#define OLD_LEAST         (256u << 10)

/* Blocks of one class that are not used any more. */
typedef struct old_blocks {
    mem_retired blocks;
    size_t bytes;
} old_blocks;

static struct {
    bool running, over; /* over: what has come of it is not known yet */
    maps_cursor cursor;
    old_blocks old[CLASSES];
    size_t old_bytes, old_most;
    uint64_t looked_us, began_us, rests_until_us;
    uint64_t found; /* bytes in holes, when it began */
    uint64_t left;  /* that nothing is to be gained from, as the last pass did not */
} pass;

void defrag_start(void) {
    maps_cursor_register(&pass.cursor);
}

/* Bytes of slabs that are in no block; 0 where the server's allocator does not tell. */
static uint64_t bytes_in_holes(RedisModuleCtx *ctx) {
    int no_allocated, no_active;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "memory");
    uint64_t allocated =
        RedisModule_ServerInfoGetFieldUnsigned(info, "allocator_allocated", &no_allocated);
    uint64_t active = RedisModule_ServerInfoGetFieldUnsigned(info, "allocator_active", &no_active);
    RedisModule_FreeServerInfo(ctx, info);
    return no_allocated || no_active || active < allocated ? 0 : active - allocated;
}

/* A child would keep what is moved; others are about to make holes, or to fill them. */
static bool must_wait(void) {
    uint64_t used = maxmemory_records_used();
    bool full = evict_near();
    pass.old_most = full ? OLD_SHARE_FULL(used) : OLD_SHARE(used) + OLD_LEAST;
    return pass.old_most < OLD_LEAST || child_at_work() || reencode_running() || train_running() ||
           settle_much();
}

/* A further pass gains what the first one's last blocks have left behind. */
static void look(RedisModuleCtx *ctx, uint64_t now_us) {
    if (now_us - pass.looked_us < LOOK_US || now_us < pass.rests_until_us) return;
    pass.looked_us = now_us;
    uint64_t holes = bytes_in_holes(ctx);
    uint64_t worth = WORTH_BYTES + WORTH_SHARE(maxmemory_records_used());
    if ((pass.over && holes + worth > pass.found) || holes < pass.left) pass.left = holes;
    pass.over = false;
    if (holes <= pass.left + worth) return;
    pass.running = true;
    pass.found = holes;
    pass.began_us = now_us;
    maps_cursor_start(&pass.cursor);
}

static void free_old(old_blocks *old) {
    mem_free_retired(&ckv.mem, &old->blocks);
    pass.old_bytes -= old->bytes;
    old->bytes = 0;
}

static void free_all_old(void) {
    for (unsigned i = 0; i < CLASSES; i++) free_old(&pass.old[i]);
}

static old_blocks *old_of_class(size_t size) {
    unsigned log = 63 - (unsigned)__builtin_clzll(size);
    return &pass.old[log << CLASSES_LOG | (size >> (log - CLASSES_LOG) & 3)];
}

static void hold(void *block, size_t size) {
    old_blocks *old = old_of_class(size);
    if (old->blocks.count + 1 == MEM_RETIRED_MAX || old->bytes >= OLD_BYTES) free_old(old);
    if (pass.old_bytes + size > pass.old_most) free_all_old();
    mem_retire(&ckv.mem, &old->blocks, block);
    old->bytes += size;
    pass.old_bytes += size;
}

static void *move_block(void *unused, void *block) {
    (void)unused;
    size_t size = ckv.mem.usable(block);
    void *moved = size <= SLAB_BLOCK_MAX ? ckv.mem.alloc(size) : NULL;
    if (!moved) return NULL;
    memcpy(moved, block, size);
    hold(block, size);
    ckv.stats.defrag_moved++;
    return moved;
}

static void finish(uint64_t now_us) {
    free_all_old();
    pass.running = false;
    pass.over = true;
    pass.looked_us = now_us;
    pass.rests_until_us = now_us + REST * (now_us - pass.began_us);
}

/* No bucket is begun that would end after the slice, if it takes as long as the last one. */
void defrag_step(RedisModuleCtx *ctx, uint64_t deadline_us) {
    keyed_map *s;
    uint32_t bucket;
    uint64_t began_us, now_us = clock_monotonic_us();
    if (must_wait()) {
        free_all_old();
        return;
    }
    if (!pass.running) look(ctx, now_us);
    while (pass.running && now_us < deadline_us) {
        if (!maps_cursor_next(&pass.cursor, &s, &bucket)) {
            finish(now_us);
            return;
        }
        if (bucket == 0) map_defrag_directory(s->m, move_block, NULL);
        map_defrag_bucket(s->m, bucket, move_block, NULL);
        began_us = now_us;
        now_us = clock_monotonic_us();
        if (now_us + (now_us - began_us) >= deadline_us) return;
    }
}

bool defrag_running(void) {
    return pass.running;
}
