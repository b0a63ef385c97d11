/*
 * loop.h: the moment in the server's event loop when it has waited and nothing of what came in has
 * been read yet. The server takes one listener of a module.
 */
#ifndef CKV_LOOP_H
#define CKV_LOOP_H

#include "ckv.h"

/* In their order. */
typedef enum loop_step { LOOP_PAUSE, LOOP_DUE, LOOP_STEPS } loop_step;

/* A module timer's wait that has it run in this round, when the commands have run that have come in
 * and before what a pause held back: as if it were long due, since one that is due now may wait a
 * millisecond for another module timer that was to come before it. */
#define LOOP_FIRST_MS (-1000)

typedef void loop_run(RedisModuleCtx *ctx);

/* Each time from now on; NULL: no more. */
void loop_set(loop_step step, loop_run *run);

/* Some times a second, from a timer: the loop is not listened to while nobody wants it. (A listener
 * that left from within an event would be freed by the server under its own feet.) */
void loop_rest(void);

#endif
