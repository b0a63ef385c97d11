/*
 * serve_key.h: commands about a key whose record only the server can answer for: it is moved out,
 * the server's own command runs, and it is moved in again, in the same instant and silently. What
 * is asked about a long value is told by its length instead.
 */
#ifndef CKV_SERVE_KEY_H
#define CKV_SERVE_KEY_H

#include "ckv.h"
#include "commands/commands.h"

/* TYPE, DUMP, OBJECT; the last is MEMORY, too: it has its key at the same place. */
command serve_type, serve_dump, serve_object;

#endif
