/* thread.c: see thread.h. */
#include "server/thread.h"

#include <pthread.h>

/* musl gives a thread 128 KB, too little for zstd and trainings; glibc 8 MB. */
#define STACK_BYTES (1024 * 1024)

bool thread_start(void *(*run)(void *)) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    bool started = pthread_create(&thread, &attributes, run, NULL) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}
