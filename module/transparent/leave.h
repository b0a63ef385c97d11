/*
 * leave.h: records become strings of the server's own, in every database where the server does not
 * tell which it is about, for a command that only the server can run.
 */
#ifndef CKV_LEAVE_H
#define CKV_LEAVE_H

#include "keyspace/move.h"

void leave_start(RedisModuleCtx *ctx);

/* Of a command: who sends it, or QUEUED_ANYBODY; whether it runs later and is not seen again by
 * then; whether it leaves strings to the server where no other command has left one; whether it
 * only reads, so that nobody is told anything of the key; whether it will run at all, which is
 * asked before a record leaves; whether another one calls it; the database that it keeps to, -1 if
 * that may be any; whether it is to wait for records that may be on their way, in which database;
 * and whether nothing can leave yet (serve_run.h). */
typedef struct leave_how {
    uint64_t client;
    bool runs_later, leaves_strings, reads;
    bool (*will_run)(void);  /* NULL: it will */
    bool (*is_called)(void); /* NULL: it is not */
    int (*only_db)(void);    /* NULL: any */
    bool (*waits)(void);     /* NULL: it is not */
    int (*db)(void);
    bool defers;
    /* Replied: a key whose record may be on its way, or can't leave yet; NULL: there is none. The
     * caller's. And whether several of these are in several slots: the server refuses that. */
    RedisModuleString *awaits;
    bool crosses;
} leave_how;

/* How the command that comes next leaves its keys; returns how the one before did. */
leave_how leave_begin(leave_how how);

/* A key of it; one that matches no prefix stays what it is. */
void leave_key(RedisModuleString *key);
/* The same of a key that matches, if there is a record of that kind, which is replied. */
bool leave_if(RedisModuleString *key, move_kind kind);

/* Whether a key tells if its slot is open: it has a record, which then is all that the server would
 * look for in vain. */
bool leave_tells_open(RedisModuleString *key, bool *open);

/* A client has come to watch a key while a file is loaded, when nothing may move: nobody could be
 * told, and the file may bring a string of that name. It leaves, if it expires then, before the
 * first command that is looked at when all is loaded. So does what a transaction has queued before,
 * where its EXEC is not told from others': what had left by then is gone, and the file has brought
 * a record. */
void leave_when_loaded(const RedisModuleString *key);
void leave_loaded(void);

/* Before a client's EXEC: what its commands need and records have arrived of since, with a file or
 * with a map; on a replica in a cluster, where nothing leaves for longer than a command, all of it.
 */
void leave_queued(uint64_t client);

/* Before a command that is about a map: what has left for a client of a replica's own comes back.
 */
void leave_before_map(void);

/* Before a command is looked at, but not, where something is untold, one that another calls: the
 * AOF is told of what moved while a pause of all writes kept it as it was, or within a call; and
 * what left for a client of a replica's own comes back, where it may. */
void leave_catch_up(void);
/* Whether there is something to tell. */
bool leave_untold(void);

#endif
