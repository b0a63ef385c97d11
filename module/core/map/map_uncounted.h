/*
 * map_uncounted.h: values that are gone, whose raw bytes are still in the sums of their maps.
 *
 *      map_put(), map_delete() ... --> batch --> full: exchange() --> uncounted_count()
 *                                                                        |  any thread
 *      the sums of their maps <------------ uncounted_end() <------------+
 *
 * How long a value was takes going over its codes, which is a tenth (of tweets) to a third (of 1 to
 * 3 KB) of the time of writing another over it. So copies of the encodings go into a batch, and are
 * counted where there is a thread for it; where there is none, or it does not follow, they are
 * counted at once.
 *
 * Only a map of a group has such values: one that leaves its group, is saved or copied counts all
 * of them first (uncounted_count_out()). That bounds how many there may be:
 * UNCOUNTED_AWAY + 1 batches, 128 KB of codes.
 */
#ifndef CKV_MAP_UNCOUNTED_H
#define CKV_MAP_UNCOUNTED_H

#include "map/map_shared.h"

/* The batch that was begun, for another thread. NULL: there is none, or too many are away. */
uncounted_batch *uncounted_take(map_shared *s);
/* Counts a batch. Any thread. */
void uncounted_count(uncounted_batch *b);
/* It is back: its values are counted out of their maps. */
void uncounted_end(map_shared *s, uncounted_batch *b);
/* Whether there are any. */
bool uncounted_any(const map_shared *s);

/* Counts all there are, here and now. */
void uncounted_count_out(map_shared *s);

#endif
