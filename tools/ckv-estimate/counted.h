/* counted.h: memory for module/core that counts as a server's does: jemalloc's size classes. */
#ifndef ESTIMATE_COUNTED_H
#define ESTIMATE_COUNTED_H

#include "base/mem.h"

extern const mem mem_counted;

/* What is allocated now, bytes. */
size_t counted_bytes(void);

/* The class of a size, bytes. */
size_t counted_class(size_t bytes);

#endif
