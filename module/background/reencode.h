/*
 * reencode.h: bringing every page to the current codec, bucket by bucket between commands. It waits
 * while a child saves, but for a client or when memory is nearly full.
 *
 * Where there are encoder threads (encoders.h) they write the pages anew (core/map/map_recode.h),
 * and what is left then is re-encoded here (core/map/map_reencode.h): pages that were written to
 * meanwhile, and large values.
 *
 * Short values that were encoded fast when they were written are encoded once more by these threads
 * when there are many, or nothing is written for a while (lull.h).
 */
#ifndef CKV_REENCODE_H
#define CKV_REENCODE_H

#include "ckv.h"

/* Once, at load. */
void reencode_init(void);

/* Starts a pass over all, from the first page: after a training, and when a file has been loaded.
 */
void reencode_start(void);

/* Goes on until `deadline_us` (monotonic). */
void reencode_step(uint64_t deadline_us);

bool reencode_running(void);
/* Whether that is of all pages. */
bool reencode_moves_all(void);
/* Pages that are still to be looked at, about. */
uint64_t reencode_pages_ahead(void);

/* CKV OPTIMIZE: starts, and the client is answered when it is done. */
int reencode_now(RedisModuleCtx *ctx);
/* Whether a client waits. */
bool reencode_awaited(void);

#endif
