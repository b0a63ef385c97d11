/* cores.c: see cores.h. */
#include "cores.h"

#include "base/both.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct work {
    void (*run)(void *);
    void *what;
} work;

static void *run_work(void *w) {
    ((work *)w)->run(((work *)w)->what);
    return NULL;
}

static void at_once(void (*run)(void *), void *a, void *b) {
    pthread_t other;
    work w = {run, b};
    bool started = pthread_create(&other, NULL, run_work, &w) == 0;
    run(a);
    if (started)
        pthread_join(other, NULL);
    else
        run(b);
}

void cores_use(void) {
    run_both = at_once;
}
