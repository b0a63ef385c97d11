/*
 * freer.h: a thread that frees blocks, for who copies data into less memory.
 *
 * An allocator hands out first what its thread has freed last (core/base/mem.h), as many blocks of
 * a size as its cache for the thread has room for: jemalloc's for 20, or 200 where they are small.
 * What another thread frees goes back to the slabs that it lies in. The thread comes with the first
 * blocks and leaves when there were none for a while, as only then all of its own cache is given
 * back.
 */
#ifndef CKV_FREER_H
#define CKV_FREER_H

#include "core/base/mem.h"

#include <stdbool.h>

/* Takes over all of them (of ckv.mem), to be freed; frees them at once if the system refuses a
 * thread. False: what was given last is still waiting, and these stay with the caller. Main thread.
 */
bool freer_give(mem_retired *old);

#endif
