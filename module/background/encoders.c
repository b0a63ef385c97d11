/* encoders.c: see encoders.h. */
#include "background/encoders.h"

#include "server/thread.h"

#include <pthread.h>

/* First in, first out. */
typedef struct line {
    job *first, *last;
} line;

/* In no order. */
typedef struct heap {
    uncounted_batch *batch[UNCOUNTED_AWAY];
    unsigned count;
} heap;

/* Between the main thread and the encoders. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    line waiting, done;
    heap uncounted, counted;
    unsigned threads, wanted;
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static void join(line *l, job *j) {
    j->next = NULL;
    *(l->first ? &l->last->next : &l->first) = j;
    l->last = j;
}

static job *leave(line *l) {
    job *j = l->first;
    if (j) l->first = j->next;
    return j;
}

static void put(heap *h, uncounted_batch *b) {
    h->batch[h->count++] = b;
}

static uncounted_batch *take(heap *h) {
    return h->count > 0 ? h->batch[--h->count] : NULL;
}

void encoders_done(job *j) {
    pthread_mutex_lock(&desk.lock);
    join(&desk.done, j);
    pthread_mutex_unlock(&desk.lock);
}

/* ---- an encoder ------------------------------------------------------------------------------ */

/* Waits for something to do. False: the thread is not wanted any more. */
static bool wait_for_work(job **j) {
    *j = NULL;
    pthread_mutex_lock(&desk.lock);
    while (desk.threads <= desk.wanted && desk.uncounted.count == 0 && !(*j = leave(&desk.waiting)))
        pthread_cond_wait(&desk.filled, &desk.lock);
    bool wanted = *j || desk.threads <= desk.wanted;
    if (!wanted) {
        desk.threads--;
        pthread_cond_signal(&desk.filled); /* what woke this one may have been for another */
    }
    pthread_mutex_unlock(&desk.lock);
    return wanted;
}

static void count_all(void) {
    pthread_mutex_lock(&desk.lock);
    for (uncounted_batch *b; (b = take(&desk.uncounted)) != NULL; put(&desk.counted, b)) {
        pthread_mutex_unlock(&desk.lock);
        uncounted_count(b);
        pthread_mutex_lock(&desk.lock);
    }
    pthread_mutex_unlock(&desk.lock);
}

static void encode(job *j, codec_workspace *work, bool ready) {
    for (uint32_t i = 0; ready && i < j->batch.count; i++) {
        young_batch_encode(&j->batch, i, work);
        count_all();
    }
    if (ready) workspace_trim(work);
    encoders_done(j);
}

static void *encoder(void *unused) {
    codec_workspace work;
    bool ready = workspace_init(&work, &mem_libc);
    (void)unused;
    for (job *j; wait_for_work(&j);) {
        count_all();
        if (j) encode(j, &work, ready);
    }
    if (ready) workspace_free(&work);
    return NULL;
}

/* ---- the main thread ------------------------------------------------------------------------- */

void encoders_want(unsigned threads) {
    pthread_mutex_lock(&desk.lock);
    desk.wanted = threads;
    if (desk.threads > threads) pthread_cond_broadcast(&desk.filled);
    if (threads == 0) {
        for (job *j; (j = leave(&desk.waiting)) != NULL;) join(&desk.done, j);
        for (uncounted_batch *b; (b = take(&desk.uncounted)) != NULL;) put(&desk.counted, b);
    }
    pthread_mutex_unlock(&desk.lock);
}

bool encoders_there(void) {
    pthread_mutex_lock(&desk.lock);
    if (desk.threads == 0 && desk.wanted > 0 && thread_start(encoder)) desk.threads++;
    bool any = desk.threads > 0 && desk.wanted > 0;
    pthread_mutex_unlock(&desk.lock);
    return any;
}

void encoders_give(job *j) {
    pthread_mutex_lock(&desk.lock);
    if (desk.threads < desk.wanted && thread_start(encoder)) desk.threads++;
    join(&desk.waiting, j);
    pthread_cond_signal(&desk.filled);
    pthread_mutex_unlock(&desk.lock);
}

job *encoders_take_waiting(size_t longest, bool *any) {
    pthread_mutex_lock(&desk.lock);
    *any = desk.waiting.first != NULL;
    job *j = *any && desk.waiting.first->longest <= longest ? leave(&desk.waiting) : NULL;
    pthread_mutex_unlock(&desk.lock);
    return j;
}

job *encoders_take_done(void) {
    pthread_mutex_lock(&desk.lock);
    job *j = leave(&desk.done);
    pthread_mutex_unlock(&desk.lock);
    return j;
}

void encoders_give_uncounted(uncounted_batch *b) {
    pthread_mutex_lock(&desk.lock);
    put(&desk.uncounted, b);
    pthread_cond_signal(&desk.filled);
    pthread_mutex_unlock(&desk.lock);
}

uncounted_batch *encoders_take_counted(void) {
    pthread_mutex_lock(&desk.lock);
    uncounted_batch *b = take(&desk.counted);
    pthread_mutex_unlock(&desk.lock);
    return b;
}
