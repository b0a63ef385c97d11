/* version.h: which server it is. */
#ifndef CKV_VERSION_H
#define CKV_VERSION_H

#include <stdbool.h>

#define REDIS_ANY  0
#define REDIS_7_2  0x00070200
#define REDIS_8_0  0x00080000
#define REDIS_8_2  0x00080200
#define REDIS_8_4  0x00080400
#define REDIS_8_6  0x00080600
#define VALKEY_ANY 0
#define VALKEY_8_0 0x00080000
#define VALKEY_8_1 0x00080100
#define VALKEY_9_0 0x00090000
#define VALKEY_9_1 0x00090100

/* Whether it is Redis, of at least this version. Valkey, which is counted anew from Redis 7.2 on,
 * is not. */
bool version_is_redis(int version);

/* Whether it is Redis 7.0, the oldest there is. */
bool version_is_7_0(void);

/* Whether it is Valkey, of at least this version. */
bool version_is_valkey(int version);

#endif
