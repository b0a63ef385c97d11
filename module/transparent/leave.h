/*
 * leave.h: records become strings of the server's own, in every database, for a command that only
 * the server can run.
 */
#ifndef CKV_LEAVE_H
#define CKV_LEAVE_H

#include "keyspace/move.h"

/* Of a command: whether it runs later and is not seen again by then, and whether it leaves strings
 * to the server where no other command has left one. */
typedef struct leave_how {
    bool runs_later, leaves_strings;
} leave_how;

/* How the command that comes next leaves its keys; returns how the one before did. */
leave_how leave_begin(leave_how how);

/* A key of it; one that matches no prefix stays what it is. */
void leave_key(RedisModuleString *key);
/* The same of a key that matches, if there is a record of that kind, which is replied. */
bool leave_if(RedisModuleString *key, move_kind kind);

/* While a pause of all writes keeps the AOF as it is, it is not told of what leaves. Behind it:
 * tells it, before anything else. */
void leave_tell_untold(void);

#endif
