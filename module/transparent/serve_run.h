/*
 * serve_run.h: commands that only the server can run, called by a script in a cluster.
 *
 * Servers newer than Redis 7.0 look keys up in the slot of the command that runs (seen of Redis 8.0
 * and 8.6, Valkey 8.1 and 9.1). The filter is asked about what a script calls before the server has
 * taken its keys' slot for that. Whatever it moved there would come to lie in another slot, and be
 * lost. So another command is put in its place, which has the slot when it runs, and calls it:
 *
 *      EVAL ... {a}x            slot of {a}x
 *        LPOP {b}l     filter:  ckv+run {b}l {b}l, of LPOP
 *          ckv+run     slot of {b}l
 *            LPOP {b}l filter:  {b}l moves out
 */
#ifndef CKV_SERVE_RUN_H
#define CKV_SERVE_RUN_H

#include "commands/command_table.h"
#include "server/filter.h"

/* ckv+run key argument ...: for a command that writes, for one that does not. */
#define SERVE_RUN_NAME    CKV_ASKING_PREFIX "run"
#define SERVE_RUN_RO_NAME CKV_ASKING_PREFIX "run_ro"
command serve_run;

void serve_run_start(void);
/* Where the module is not loaded after all. */
void serve_run_give_back(void);

/* Whether the server looks keys up in another slot than that of those which a command names that
 * the filter is asked about, if a script calls it. (What a client sends while a busy script lets
 * him is none of it.) */
bool serve_run_has_to(void);
/* Puts ours in the place of such a command, of that name in lower case, which stays valid. `key`:
 * one of its keys, which is taken over. */
void serve_run_instead(filtered *command, const char *name, bool reads, RedisModuleString *key);

#endif
