/*
 * mem.h: the allocator that core is given.
 *
 * Core never calls malloc: whoever creates an object passes the functions that it
 * is to live in (inside a server those of the server, so that maxmemory and INFO
 * tell the truth; in tests those that count, or fail on purpose).
 *
 * alloc and realloc may return NULL; every function of core that takes a `mem` says
 * what it does then. All functions must be callable from any thread.
 */
#ifndef CKV_MEM_H
#define CKV_MEM_H

#include <stddef.h>

typedef struct mem {
    void *(*alloc)(size_t bytes);
    void *(*realloc)(void *block, size_t bytes);
    void (*free)(void *block);
    /* Bytes that the allocator really set aside for a block, its size class. */
    size_t (*usable)(void *block);
} mem;

/* libc's malloc, for tests, fuzzers, benchmarks and for whoever uses a part of core alone. */
extern const mem mem_libc;

#endif
