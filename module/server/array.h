/* array.h: arrays in the server's memory that grow by one element at a time. */
#ifndef CKV_ARRAY_H
#define CKV_ARRAY_H

#include "redismodule.h"

#include <stddef.h>

#define ARRAY_FIRST_ROOM 64

/* Where the array is after it was given room for one element more; `count` there are, of `size`
 * bytes, and room for `*room`. NULL with a room of 0: there is none yet. */
static inline void *array_grow(void *array, size_t count, size_t *room, size_t size) {
    if (count < *room) return array;
    *room = *room ? 2 * *room : ARRAY_FIRST_ROOM;
    return RedisModule_Realloc(array, *room * size);
}

#endif
