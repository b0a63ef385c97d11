/* string_bytes.h: what strings of the server's own take. */
#ifndef CKV_STRING_BYTES_H
#define CKV_STRING_BYTES_H

#include "ckv.h"

/* About what the server takes for a string of the selected database with so many bytes in its
 * value: right in the mean of many. */
size_t string_bytes(RedisModuleCtx *ctx, RedisModuleString *key, size_t len);

/* From here to (false) no client's command is under way: the server may be asked. Whoever tracks
 * keys would be told of those that it is asked about within a command of his (Redis 7.2 on,
 * Valkey). */
void string_bytes_by_timer(bool by);

#endif
