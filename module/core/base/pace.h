/*
 * pace.h: how much of a core a long computation takes.
 *
 * A thread that computes for seconds takes a whole core. Where all cores are busy, or a container's
 * CPU limit is reached, the kernel makes up for that by stopping everybody, the thread that serves
 * clients included, for tens of milliseconds. So a computation that nobody waits for sleeps in
 * between.
 */
#ifndef CKV_PACE_H
#define CKV_PACE_H

#include <stdatomic.h>

/* From now on this thread computes for at most `*percent` of the time, 1 to 100, as far as it calls
 * pace_keep(): for what it computes it sleeps, not for what it was kept from that by others. 100:
 * all of the time, as every thread does that has not said otherwise. Any thread may raise it
 * meanwhile. */
void pace_follow(const atomic_uint *percent);

/* To be called at least every millisecond or so; takes some 30 ns mostly, which is reading a clock.
 */
void pace_keep(void);

#endif
