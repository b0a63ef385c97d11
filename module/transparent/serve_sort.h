/* serve_sort.h: SORT in a transaction. */
#ifndef CKV_SERVE_SORT_H
#define CKV_SERVE_SORT_H

#include "ckv.h"

/* SORT and SORT_RO with patterns, as they run: what they sort may have changed since they were
 * queued. The server does the rest. */
int serve_sort(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
