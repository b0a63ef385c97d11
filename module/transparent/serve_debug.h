/*
 * serve_debug.h: DEBUG SET-ACTIVE-EXPIRE, which goes for records as well, and DEBUG DIGEST, by
 * which two servers are compared: one digest of what all keys hold, in whatever order. The server's
 * own would be about maps, and about which strings are where. So here a string counts the same as a
 * record and as a key; of other types the server is asked. It is another number than a server
 * without the module tells.
 */
#ifndef CKV_SERVE_DEBUG_H
#define CKV_SERVE_DEBUG_H

#include "commands/commands.h"

/* Both; only where DEBUG is allowed, which the server does not check under our name. */
command serve_debug;

#endif
