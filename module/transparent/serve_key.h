/*
 * serve_key.h: commands about a key whose record only the server can answer for: it is moved out,
 * the server's own command runs, and it is moved in again, in the same instant and silently. What
 * is asked about a long value is told by its length instead.
 */
#ifndef CKV_SERVE_KEY_H
#define CKV_SERVE_KEY_H

#include "ckv.h"
#include "commands/commands.h"

/* TYPE; DUMP, whose first argument is the key; OBJECT and MEMORY, whose second is. */
command serve_type, serve_first, serve_second;

/* CMOVEOUT key: a record is moved out, and an AOF is told. For ourselves and the AOF. */
command serve_move_out;
/* The same for ourselves alone (move_call.h), in any slot; and a string that was moved out so is
 * moved in. */
command serve_move_out_unasked, serve_move_back_unasked;

/* CMOVEIN key [SERVED]: a string is moved in; SERVED: if it is under a prefix here as well. For
 * replicas and the AOF. */
command serve_move_in;

/* CPLAIN step command key argument ...: each step-th argument is a key of a command that was
 * served. CPREFIXES prefixes [key]: those under which commands were served, that of the key among
 * them. See keyspace/aof_form.h. */
command serve_plain, serve_prefixes;

#endif
