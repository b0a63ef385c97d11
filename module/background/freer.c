/* freer.c: see freer.h. */
#include "background/freer.h"

#include "ckv.h"
#include "server/thread.h"

#include <pthread.h>
#include <time.h>

#define STAY_NS   100000000
#define SECOND_NS 1000000000

/* Between the main thread and the one that frees. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled; /* waited for by the monotonic clock: the other may be set back */
    mem_retired given;
    bool thread;
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void make_condition(void) {
    pthread_condattr_t by;
    pthread_condattr_init(&by);
    pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
    pthread_cond_init(&desk.filled, &by);
    pthread_condattr_destroy(&by);
}

/* False: the thread is to leave. */
static bool take(mem_retired *old) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += STAY_NS;
    until.tv_sec += until.tv_nsec / SECOND_NS;
    until.tv_nsec %= SECOND_NS;
    pthread_mutex_lock(&desk.lock);
    while (!desk.given.last && !pthread_cond_timedwait(&desk.filled, &desk.lock, &until)) continue;
    *old = desk.given;
    desk.given = (mem_retired){0};
    desk.thread = old->last != NULL;
    pthread_mutex_unlock(&desk.lock);
    return old->last != NULL;
}

static void *run(void *unused) {
    (void)unused;
    for (mem_retired old; take(&old);) mem_free_retired(&ckv.mem, &old);
    return NULL;
}

bool freer_give(mem_retired *old) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!old->last) return true;
    pthread_once(&once, make_condition);
    pthread_mutex_lock(&desk.lock);
    if (!desk.thread) desk.thread = thread_start(run);
    bool thread = desk.thread, takes = !desk.given.last;
    if (thread && takes) {
        desk.given = *old;
        *old = (mem_retired){0};
        pthread_cond_signal(&desk.filled);
    }
    pthread_mutex_unlock(&desk.lock);
    if (!thread) mem_free_retired(&ckv.mem, old);
    return takes;
}
