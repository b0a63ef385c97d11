/* mem.c: libc as an allocator of core. */
#include "mem.h"

#include <malloc.h>
#include <stdlib.h>

const mem mem_libc = {malloc, realloc, free, malloc_usable_size};
