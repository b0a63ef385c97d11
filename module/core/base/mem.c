/* mem.c: libc as an allocator of core; blocks to be freed later. */
#include "base/mem.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

const mem mem_libc = {malloc, realloc, free, malloc_usable_size};

void mem_free_retired(const mem *m, mem_retired *all) {
    void *block = all->last;
    while (block) {
        void *before;
        memcpy(&before, block, sizeof before);
        m->free(block);
        block = before;
    }
    *all = (mem_retired){0};
}

void mem_retire(const mem *m, mem_retired *all, void *block) {
    memcpy(block, &all->last, sizeof all->last);
    all->last = block;
    if (++all->count == MEM_RETIRED_MAX) mem_free_retired(m, all);
}
