/* libc_heap.c: see libc_heap.h. */
#include "server/libc_heap.h"

#ifdef __GLIBC__

#include "server/server_info.h"

#include <malloc.h>

/* glibc takes blocks of this many bytes from the system and gives them back at once, and what is
 * free at the end of a heap when there is as much of it. With each larger block that it is given
 * back it raises both, to 32 and 64 MB, and of other heaps than the main thread's malloc_trim()
 * leaves the end: 2 to 13 MB stayed after 1M tweets had been trained on. To set it keeps it as it
 * is. */
#define MAPPED_BYTES (128 * 1024)

void libc_heap_start(RedisModuleCtx *ctx) {
    if (!server_info_is(ctx, "memory", "mem_allocator", "libc"))
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

void libc_heap_trim(void) {
    malloc_trim(0);
}

#else /* musl gives back by itself what is free */

void libc_heap_start(RedisModuleCtx *ctx) {
    (void)ctx;
}

void libc_heap_trim(void) {}

#endif
