/*
 * watched.h: telling WATCH of records that go all at once, with their map or database.
 *
 * The server asks for each watched name whether it is a key of its own that went, and a record's is
 * none. So each record is signalled, if anybody may be watching: newer servers tell how many do,
 * older ones only that somebody did since they were started, or may have before CONFIG RESETSTAT.
 */
#ifndef CKV_WATCHED_H
#define CKV_WATCHED_H

#include "keyspace/maps.h"

/* A map's records are about to go, and be they of a slot that is not served any more
 * (migration.h): whoever watches one of them, or tracks keys, is told. Of a whole database the
 * server tells the latter itself. */
void watched_leave(keyed_map *s);
/* In a cluster: all of these slots (by slot) are about to go at once. Nobody tracks keys then. */
void watched_leave_slots(const bool *slots);
/* They have come with a slot that is to be served, and may have been here before. */
void watched_come(keyed_map *s);

/* The same of all that a database serves (-1: all of them). */
void watched_db(int db);
/* What a database serves has come there from another, where somebody may watch the same names. */
void watched_db_from(int db, int other);

#endif
