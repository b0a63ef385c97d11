/* both.c: see both.h. */
#include "base/both.h"

static void one_by_one(void (*run)(void *), void *a, void *b) {
    run(a);
    run(b);
}

void (*run_both)(void (*run)(void *), void *a, void *b) = one_by_one;
