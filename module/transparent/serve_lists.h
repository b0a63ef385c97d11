/*
 * serve_lists.h: SCAN, KEYS and RANDOMKEY over the server's own keys and the records together. The
 * maps, which are keys to the server, are left out, and so are records that match no prefix: they
 * were written with our own commands, and are listed by those.
 *
 * SCAN goes over the server's own keys, then over the records. A record that moves out meanwhile
 * may have become a key where the first phase has passed by already: if any has, it goes over the
 * server's own keys once more. A cursor has bits for that above those of the phase's own, and below
 * what every client's numbers can hold:
 *
 *      52     51   50    49     48 47                 0
 *      +--------+-------+---------+------------------+
 *      | times  | moved | phase   | cursor           |    SCAN's, or commands/cmd_scan.c
 *      +--------+-------+---------+------------------+
 *
 *      times   how many calls of anybody had found that records moved out, modulo 4
 *      moved   some have between two calls of this scan
 */
#ifndef CKV_SERVE_LISTS_H
#define CKV_SERVE_LISTS_H

#include "commands/commands.h"

command serve_scan, serve_keys, serve_randomkey;

#endif
