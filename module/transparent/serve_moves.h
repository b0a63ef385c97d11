/*
 * serve_moves.h: commands by which replicas and an AOF are told what the server's own do not say:
 * which strings moved out of ckv and into it, and which commands were served by it.
 */
#ifndef CKV_SERVE_MOVES_H
#define CKV_SERVE_MOVES_H

#include "commands/commands.h"

/* CMOVEOUT key: a record is moved out, and an AOF is told, and in a cluster replicas. */
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
