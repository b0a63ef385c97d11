/* counting.h: an allocator that counts, and fails when told to. */
#ifndef CKV_COUNTING_H
#define CKV_COUNTING_H

#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>

/* What is learned may be learned on two threads. */
static atomic_size_t live_blocks;
static atomic_long allocations_left = -1; /* there is no memory after so many; -1: no end */

static void *counting_alloc(size_t bytes) {
    long left = atomic_load(&allocations_left);
    while (left > 0 && !atomic_compare_exchange_weak(&allocations_left, &left, left - 1)) {
    }
    if (left == 0) return NULL;
    atomic_fetch_add(&live_blocks, 1);
    return malloc(bytes);
}

static void counting_free(void *block) {
    atomic_fetch_sub(&live_blocks, 1);
    free(block);
}

static inline const mem *counting(void) {
    static mem m;
    m = mem_libc;
    m.alloc = counting_alloc;
    m.free = counting_free;
    return &m;
}

#endif
