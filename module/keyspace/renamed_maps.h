/*
 * renamed_maps.h: maps that RENAME and MOVE have taken to another key.
 *
 * The server tells when a value leaves its key, but not where it went. Keyspace notifications
 * would, but a module that listens to them makes Valkey 8.1 forget which database a client had
 * selected (module.c, moduleNotifyKeyspaceEvent: selectDb of the executing client; 9.1 restores
 * it): after a MOVE, or a COPY with DB, of whatever key, the client and what is replicated go on in
 * the other one. So nobody listens there, and on no server for this: when a map has left its key
 * without being freed, the one name under which it is served, that of its home, is tried in every
 * database. A record that is asked for by its key finds such a map earlier (lookup.c). Whatever
 * takes it elsewhere once more is told again.
 */
#ifndef CKV_RENAMED_MAPS_H
#define CKV_RENAMED_MAPS_H

#include "ckv.h"

/* Looks for some; for the timer. */
void renamed_maps_step(void);

/* Looks for all, for commands that list or count all records. In a cluster such a
 * command may run for a slot that is not theirs (in a script): the timer has to do there. */
void renamed_maps_find(void);

#endif
