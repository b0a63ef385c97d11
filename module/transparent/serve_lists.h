/*
 * serve_lists.h: SCAN, KEYS and RANDOMKEY over the server's own keys and the records together. The
 * maps, which are keys to the server, are left out, and so are records that match no prefix: they
 * were written with our own commands, and are listed by those.
 */
#ifndef CKV_SERVE_LISTS_H
#define CKV_SERVE_LISTS_H

#include "commands/commands.h"

command serve_scan, serve_keys, serve_randomkey;

#endif
