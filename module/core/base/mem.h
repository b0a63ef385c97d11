/*
 * mem.h: the allocator that core is given.
 *
 * Core never calls malloc (poison.h sees to it): whoever creates an object passes the
 * functions that it is to live in (inside a server those of the server, so that maxmemory and INFO
 * tell the truth; in tests those that count, or fail on purpose).
 *
 * alloc and realloc may return NULL; every function of core that takes a `mem` says
 * what it does then. All functions must be callable from any thread.
 */
#ifndef CKV_MEM_H
#define CKV_MEM_H

#include <stddef.h>
#include <stdint.h>

typedef struct mem {
    void *(*alloc)(size_t bytes);
    void *(*realloc)(void *block, size_t bytes);
    void (*free)(void *block);
    /* Bytes of a block that may be used, all that the allocator has set aside for it. */
    size_t (*usable)(void *block);
} mem;

/* How far apart the size classes of jemalloc, the allocator of most servers, are at so many bytes,
 * at least 64: there are four to a doubling. A block that does not fill its class wastes up to a
 * fifth of it. */
static inline size_t mem_class_step(size_t bytes) {
    return (size_t)1 << (63 - __builtin_clzll(bytes) - 2);
}

/* The class that is next to so many bytes, at most a 16th above. */
static inline size_t mem_class_near(size_t bytes) {
    size_t most = bytes + bytes / 16;
    return bytes < 64 ? bytes : most & ~(mem_class_step(most) - 1);
}

/*
 * Blocks that nobody uses any more, to be freed many at a time.
 *
 * An allocator hands out first what its thread has freed last. Who copies data into less memory,
 * block by block, and frees each old one at once, gets the old ones back for what comes next: the
 * copies lie scattered where the originals were, and of no slab is everything free. (Of 1M tweets
 * that were encoded after all had been loaded, used_memory went from 84 to 34 MB and RSS stayed
 * at 97; freed by 512, it went down to 57.)
 */
#define MEM_RETIRED_MAX 512 /* blocks */
typedef struct mem_retired {
    void *last; /* each block begins with a pointer to the one before */
    uint32_t count;
} mem_retired;

/* Takes a block of at least the size of a pointer; may free all that there are. */
void mem_retire(const mem *m, mem_retired *all, void *block);
void mem_free_retired(const mem *m, mem_retired *all);

/* libc's malloc: what is taken for a moment, as to train and to encode aside, does not count
 * against the server's limit; and for tests, fuzzers and benchmarks. */
extern const mem mem_libc;

#endif
