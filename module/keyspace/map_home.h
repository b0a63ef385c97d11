/*
 * map_home.h: the Redis key that a map is the value of, its home. places.h says what it is called.
 *
 * In every function ctx has the database selected.
 */
#ifndef CKV_MAP_HOME_H
#define CKV_MAP_HOME_H

#include "keyspace/maps.h"

/* What the key of a place holds: a map that is inert there is as any other value. */
typedef enum map_home_holds { HOME_EMPTY, HOME_MAP, HOME_OTHER } map_home_holds;

/* Looks at the key of a place whose map is not listed, and lists one that has come there without
 * our doing. *s is NULL if there is none. */
map_home_holds map_home_look(RedisModuleCtx *ctx, int db, uint32_t place, keyed_map **s);

/* The map of a place, made if there is none. NULL: out of memory, or its key holds something else.
 */
keyed_map *map_home_make(RedisModuleCtx *ctx, int db, uint32_t place);

/* Deletes the key of a map that holds no record any more. */
void map_home_drop_if_empty(RedisModuleCtx *ctx, const keyed_map *s);

#endif
