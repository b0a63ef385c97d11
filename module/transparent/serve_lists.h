/*
 * serve_lists.h: SCAN, KEYS and RANDOMKEY over the server's own keys and the records together. The
 * maps, which are keys to the server, are left out, and so are records that match no prefix: they
 * were written with our own commands, and are listed by those.
 *
 * A cursor of SCAN is the server's own until that is through, then that of CSCAN with a bit set
 * which the server's cursors leave free and which every client's numbers can hold:
 *
 *      51  50 49          32 31        0
 *      +-----+--------------+-----------+
 *      | f 1 | place        | position  |    see commands/cmd_scan.c
 *      +-----+--------------+-----------+
 *
 * So a string that moves into ckv meanwhile is met in one place or the other. Where strings move
 * out, of prefixes that are leaving, the records come first as well (f: they do now).
 */
#ifndef CKV_SERVE_LISTS_H
#define CKV_SERVE_LISTS_H

#include "commands/commands.h"

command serve_scan, serve_keys, serve_randomkey;

#endif
