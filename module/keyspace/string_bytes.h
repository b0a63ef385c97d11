/* string_bytes.h: what strings of the server's own take. */
#ifndef CKV_STRING_BYTES_H
#define CKV_STRING_BYTES_H

#include "ckv.h"

/* About what the server takes for a string of the selected database with so many bytes in its
 * value: right in the mean of many. */
size_t string_bytes(RedisModuleCtx *ctx, RedisModuleString *key, size_t len);

#endif
