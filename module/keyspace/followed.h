/*
 * followed.h: in a cluster, which prefixes serve on a replica: those of its primary.
 *
 * Slots leave map by map, so that a replica is to hold in its maps what its primary does, and makes
 * a record of a SET that it is told of where the primary has made one. It learns what serves there
 *
 *      from the file of a full sync          serving, and leaving behind a line's end
 *      from the stream, when that changes    CPREFIXES "user: session:"    serving
 *
 * and its own setting waits until it is a primary. Until it has been told, as by a primary without
 * prefixes that has no records, the setting holds. Elsewhere a replica has prefixes of its own.
 */
#ifndef CKV_FOLLOWED_H
#define CKV_FOLLOWED_H

#include "ckv.h"

void followed_start(void);

/* What serves has changed, perhaps. Replicas are told from between commands, before anything else,
 * by who listens to pauses (server/pause.h): what a command tells that writes nothing the server
 * takes for a write, and passes the command on as well, which is CONFIG SET here. */
void followed_changed(void);
/* Whether they are still to be told; tells them, if anybody can be told anything. */
bool followed_owes(void);
void followed_tell(void);

/* A file begins to be loaded, or is loaded; it has brought a text of prefixes_all(). */
void followed_loading(bool began);
void followed_of_file(const char *text, size_t len);

/* The primary has told what serves there. */
void followed_told(const char *text, size_t len);

#endif
