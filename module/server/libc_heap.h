/*
 * libc_heap.h: what libc's malloc() keeps of what it was given back.
 *
 * Trainings, and values that are encoded aside, work in libc's memory (base/mem.h). Where the
 * server has an allocator of its own, as most have, hardly anything else does.
 */
#ifndef CKV_LIBC_HEAP_H
#define CKV_LIBC_HEAP_H

#include "redismodule.h"

/* To be called once, before anything large is taken. */
void libc_heap_start(RedisModuleCtx *ctx);

/* Gives back to the system what is free. From any thread. */
void libc_heap_trim(void);

#endif
