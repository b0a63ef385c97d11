/*
 * exact_times.h: when the records expire that were given a time last, to the ms.
 *
 * A record keeps its time to within 0.1% of its TTL (core/base/expiry.h). Who gives it one and asks
 * for it next, as the tests of applications do, is told what he gave: the time is noted here, until
 * others need the room.
 *
 *      set | mark of the record | time, ms | mark | time | mark | time | mark | time |
 *                          64 bytes, chosen by the mark, what was noted last first
 *
 * The mark is made of the key's hash and of the map, as it is listed now: what is in a map that
 * came from elsewhere, or in another database, is another record. A note counts only as far as the
 * record's own two bytes leave its time open, so it may stay where a record goes or its time. But
 * whoever gives a record of a listed map another time has to note it. Of the main thread.
 */
#ifndef CKV_EXACT_TIMES_H
#define CKV_EXACT_TIMES_H

#include "core/map/map.h"

/* A record of that map has been given a time, ms; EXPIRY_NEVER is none. */
void exact_times_note(const map *m, const map_key *k, int64_t at_ms);

/* When a record that was found expires, ms; EXPIRY_NEVER: that is not known, or never. */
int64_t exact_times_of(const map *m, const map_key *k, const map_pos *pos);

#endif
