/*
 * defrag.h: moving blocks together, so that memory which a smaller store has left goes back.
 *
 * Where records have become smaller (a training, young values that were encoded) or are gone, slabs
 * of the allocator have holes: used_memory is small and the RSS is not, by a third behind a bulk
 * load. The server's `activedefrag` is off unless somebody turns it on, and is not to be had where
 * jemalloc is the system's, as Debian's.
 *
 * A pass copies each block of a page or large record to a new one; another thread frees the old
 * ones (freer.h). The allocator hands out holes of its oldest slabs first, so that the newest get
 * empty. One begins when the allocator says that more than a 32nd of what records take lies in
 * holes beside those from which the last pass gained nothing, and takes a hundredth of the time at
 * most. It waits while a child shares the memory, and while there is other work that makes holes or
 * fills them.
 */
#ifndef CKV_DEFRAG_H
#define CKV_DEFRAG_H

#include "ckv.h"

/* Once, at load. */
void defrag_start(void);

/* Looks whether there is something to gain, or goes on until `deadline_us` (monotonic). */
void defrag_step(RedisModuleCtx *ctx, uint64_t deadline_us);

bool defrag_running(void);

#endif
