/*
 * counted.c: see counted.h.
 *
 *      +-------+------------------+
 *      | class | block            |
 *      +-------+------------------+
 *       16 bytes
 */
#include "counted.h"

#include <stdlib.h>

#define HEADER       16
#define SMALL_STEP   16  /* between classes up to */
#define SMALL_CLASS  128 /* this; beyond there are four to a doubling */
#define CLASS_AT(at) (*(size_t *)(at))

static size_t allocated;

size_t counted_class(size_t bytes) {
    if (bytes <= 8) return 8;
    size_t step = bytes > SMALL_CLASS ? mem_class_step(bytes - 1) : SMALL_STEP;
    return (bytes + step - 1) & ~(step - 1);
}

size_t counted_bytes(void) {
    return allocated;
}

static char *start_of(void *block) {
    return (char *)block - HEADER;
}

static size_t usable(void *block) {
    return CLASS_AT(start_of(block));
}

static void *resize(void *block, size_t bytes) {
    size_t class = counted_class(bytes), before = block ? usable(block) : 0;
    char *at = realloc(block ? start_of(block) : NULL, HEADER + class);
    if (!at) return NULL;
    CLASS_AT(at) = class;
    allocated += class - before;
    return at + HEADER;
}

static void *take(size_t bytes) {
    return resize(NULL, bytes);
}

static void give_back(void *block) {
    allocated -= usable(block);
    free(start_of(block));
}

const mem mem_counted = {take, resize, give_back, usable};
