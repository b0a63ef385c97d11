/*
 * settle.h: young values (core/map/map_settle.h) are encoded, by threads of their own, in slices
 * between commands.
 *
 *      fill a batch  ----->  an encoder (encoders.h)
 *      swap in       <-----
 *
 * Values are encoded when they have been left alone for a second; at any age when they fill more
 * than three quarters of what they may; and all of them when memory is short, or a client waits.
 * While a training runs they wait for what it learns, unless one of these presses; for the first
 * one also where they fill what they may.
 */
#ifndef CKV_SETTLE_H
#define CKV_SETTLE_H

#include "ckv.h"

#define SETTLE_THREADS_MAX 64

/* A setting has changed, or may have. */
void settle_configure(void);

typedef enum settle_when {
    SETTLE_LATER, /* what is not pressing can wait: the next codec is about to come */
    SETTLE_OLD,
    SETTLE_ALL, /* whatever their age */
} settle_when;

/* Goes on until `deadline_us` (monotonic). */
void settle_step(uint64_t deadline_us, settle_when when);

/* Encodes some, at once. Returns the bytes that this has freed; 0: hardly any, or there is nothing
 * to encode. */
size_t settle_some(void);

/* Whether there are batches under way, or hot values that are to go. */
bool settle_running(void);
/* Whether there is so much to do that the timer should come by often. */
bool settle_much(void);

/* A mark for what is young now, and whether all of it has been encoded, or is gone. */
uint64_t settle_mark(void);
bool settle_has_come_to(uint64_t mark);

#endif
