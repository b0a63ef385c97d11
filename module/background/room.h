/*
 * room.h: making room, by evicting records and other keys, in proportion to what they take, and,
 * before that, by encoding what is young and what is the server's for a while. When, and how much,
 * is evict.h's to say.
 */
#ifndef CKV_ROOM_H
#define CKV_ROOM_H

#include "ckv.h"

void room_start(void);
/* The policy has changed, or something else that counts. */
void room_configure(void);

/* Whether the policy lets no record go; whether nothing was found lately that may go. */
bool room_nothing_may_go(void);
bool room_exhausted(void);

/* Sees what records and other keys take, where `reserved` bytes are to be free besides. */
void room_weigh(size_t reserved);

/* Bytes that are missing where so many are to be free beside those that the timer keeps free for
 * commands. */
double room_missing(size_t reserved);

/* From here to room_by_timer(false) no command of a client is under way. */
void room_by_timer(bool by);

/* Frees so many bytes of data, other keys too (`others`) where they share the limit; stops at a
 * time (monotonic, us). What used memory says meanwhile is no guide: what replicas and AOF will be
 * told is waiting in it. Returns how many records, other keys, settled values and strings that
 * moved in have made some, about. */
uint64_t room_make(RedisModuleCtx *ctx, double bytes, uint64_t deadline_us, bool others);
/* Whether that is under way. */
bool room_being_made(void);

/* Bytes that have been freed; to be compared within a command. */
uint64_t room_freed(void);

#endif
