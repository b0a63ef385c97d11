/*
 * exact_times.h: when the records expire that were given a time last, to the ms.
 *
 * A record keeps its time to within 0.1% of its TTL (core/base/expiry.h). Who gives it one and asks
 * for it next, as the tests of applications do, is told what he gave: the time is noted here, by
 * the key's hash, until another key needs the cell.
 *
 *      cell | mark of the key | time, ms |        16 bytes, chosen by the mark
 *
 * A note counts only as far as the record's own two bytes leave its time open. So it does not
 * matter what becomes of a record: of one that was given another time, or went and came again,
 * nobody finds the note, or one that is right to within what there was to know. Of the main thread.
 */
#ifndef CKV_EXACT_TIMES_H
#define CKV_EXACT_TIMES_H

#include "core/map/map.h"

/* Of a record that has been given a time (ms); EXPIRY_NEVER is none. */
void exact_times_note(const map_key *k, int64_t at_ms);

/* What may be told of when a record expires: no later than was asked for. EXPIRY_NEVER: never.
 * exact_times_know(): whether it is just that. */
int64_t exact_times_told_ms(const map_key *k, const map_pos *pos);
bool exact_times_know(const map_key *k, const map_pos *pos);

#endif
