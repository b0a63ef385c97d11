/* zstd_mem.h: zstd.h, and a `mem` as zstd's allocator. */
#ifndef CKV_ZSTD_MEM_H
#define CKV_ZSTD_MEM_H

#define ZSTD_STATIC_LINKING_ONLY /* for the allocator parameter */
#include "base/mem.h"

#include <zstd.h>

static inline void *zstd_mem_alloc(void *m, size_t n) {
    return ((const mem *)m)->alloc(n);
}
static inline void zstd_mem_free(void *m, void *block) {
    if (block) ((const mem *)m)->free(block);
}
static inline ZSTD_customMem zstd_mem(const mem *m) {
    return (ZSTD_customMem){zstd_mem_alloc, zstd_mem_free, (void *)m};
}

#endif
