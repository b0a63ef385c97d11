/* version.h: which server it is. */
#ifndef CKV_VERSION_H
#define CKV_VERSION_H

#include <stdbool.h>

#define REDIS_7_2 0x00070200
#define REDIS_8_2 0x00080200
#define REDIS_8_4 0x00080400
#define REDIS_8_6 0x00080600

/* Whether it is Redis, of at least this version (REDIS_8_2). Valkey, which is counted anew
 * from Redis 7.2 on, is not. */
bool version_is_redis(int version);

/* Whether it is Valkey, of at least this version (9.1). */
bool version_is_valkey(double version);

#endif
