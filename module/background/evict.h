/*
 * evict.h: making room by evicting records, as `maxmemory-policy` says, before the server would
 * evict a whole map.
 *
 * Each of the two limits (keyspace/maxmemory.h) is kept at two places:
 *
 *      limit - 1% of what may go    between commands, in slices: where memory stays while all is
 *                                   well
 *      limit - 0.05% of the limit   before each command, at once: the server looks next, and finds
 *                                   enough. Of ckv.maxmemory, nobody's else: twice as much as was
 *                                   written, and a little more
 *
 * and 1 KB less in both places. The first takes a slice, the second 4 ms at most: where more has to
 * go, since a limit was lowered, something else took memory, or what may go is hard to find, the
 * server's setting stands above what is used until the slices have made the room, lest the server
 * evict maps; and commands do for it as they do for ckv.maxmemory. So it does where a record that
 * has moved out for a command is larger than it was. Whenever the setting is set the server looks a
 * third time, from a timer: we do so just before. And where it looks with no look of ours before,
 * at what a pause of all writes has held back and at clients that a command has unblocked, the
 * setting is raised far above what they may take.
 *
 * Where the policy covers other keys too (allkeys-*, or volatile-* and some expire), both kinds
 * give way, each in proportion to what it takes. The other keys are evicted here as well: the
 * server, if asked, might take a map.
 */
#ifndef CKV_EVICT_H
#define CKV_EVICT_H

#include "ckv.h"

/* Once, at load, when the settings are known. */
void evict_start(RedisModuleCtx *ctx);

/* A module has come or gone. */
void evict_modules_changed(RedisModuleCtx *ctx);

/* Makes room until `deadline_us` (monotonic), if memory is near a limit. True: come back soon. */
bool evict_step(RedisModuleCtx *ctx, uint64_t deadline_us);

/* Whether memory is so near a limit that evict_step() should come by often. */
bool evict_near(void);

/* Makes all the room that the next command needs. Returns how many records and other keys were
 * evicted, or young values settled, for it. */
uint64_t evict_now(RedisModuleCtx *ctx);

/* Somebody is about to take so many bytes, and must find them free: room is made for them slowly.
 * 0: no longer. */
void evict_reserve(size_t bytes);
/* Whether they are free, or never will be; from then on they are kept so. */
bool evict_reserved(void);

#endif
