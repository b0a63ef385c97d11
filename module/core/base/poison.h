/*
 * poison.h: core cannot call malloc().
 *
 * The compiler is told to read this before every file of core, but in the release build, where it
 * would see through mem.c (see the Makefile). A call of one of these is an error then; their
 * addresses, which mem.c takes, are not. The one way to memory is the `mem` that whoever creates an
 * object passes.
 */
#ifndef CKV_POISON_H
#define CKV_POISON_H

#include <stdlib.h>
#include <string.h>

/* clang, which only the fuzz targets are compiled with, refuses it on what it knows by itself. */
#ifdef __clang__
#define POISONED
#else
#define POISONED __attribute__((error("core takes memory from a mem only, see base/mem.h")))
#endif

POISONED void *malloc(size_t);
POISONED void *calloc(size_t, size_t);
POISONED void *realloc(void *, size_t);
POISONED void *aligned_alloc(size_t, size_t);
POISONED void free(void *);
POISONED char *strdup(const char *);
POISONED char *strndup(const char *, size_t);
/* It may allocate: see base/sort.h. */
POISONED void qsort(void *, size_t, size_t, int (*)(const void *, const void *));

#undef POISONED

#endif
