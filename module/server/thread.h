/* thread.h: starting a thread of ours. */
#ifndef CKV_THREAD_H
#define CKV_THREAD_H

#include <stdbool.h>

/* A thread that calls run(NULL) and that nobody joins. False: the system refuses it. */
bool thread_start(void *(*run)(void *));

#endif
