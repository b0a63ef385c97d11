/* encoders.c: see encoders.h. */
#include "background/encoders.h"

#include "server/thread.h"

#include <pthread.h>

/* Batches of values for each of pages, where there are both. */
#define VALUES_IN_TURN 4

/* First in, first out. */
typedef struct line {
    encoder_job *first, *last;
} line;

/* In no order. */
typedef struct heap {
    void *batch[ENCODERS_PAGES_AWAY];
    unsigned count;
} heap;
_Static_assert(UNCOUNTED_AWAY <= ENCODERS_PAGES_AWAY, "a heap has room for all of a kind");

/* Between the main thread and the encoders. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    line waiting, done;
    heap uncounted, counted, pages, anew;
    unsigned threads, wanted;
    unsigned turn; /* of what the encoders take */
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static void join(line *l, encoder_job *j) {
    j->next = NULL;
    *(l->first ? &l->last->next : &l->first) = j;
    l->last = j;
}

static encoder_job *leave(line *l) {
    encoder_job *j = l->first;
    if (j) l->first = j->next;
    return j;
}

static void put(heap *h, void *b) {
    h->batch[h->count++] = b;
}

static void *take(heap *h) {
    return h->count > 0 ? h->batch[--h->count] : NULL;
}

static void *locked_take(heap *h) {
    pthread_mutex_lock(&desk.lock);
    void *b = take(h);
    pthread_mutex_unlock(&desk.lock);
    return b;
}

void encoders_done(encoder_job *j) {
    pthread_mutex_lock(&desk.lock);
    join(&desk.done, j);
    pthread_mutex_unlock(&desk.lock);
}

/* ---- an encoder ------------------------------------------------------------------------------ */

/* Values first, but now and then pages, which would wait for as long as values keep coming. */
static bool take_work(encoder_job **j, recode_batch **pages) {
    bool pages_first = ++desk.turn % VALUES_IN_TURN == 0;
    if (!pages_first) *j = leave(&desk.waiting);
    if (!*j) *pages = take(&desk.pages);
    if (!*j && !*pages) *j = leave(&desk.waiting);
    return *j || *pages;
}

/* Waits for something to do: values, pages, or to count. False: the thread is not wanted any more.
 */
static bool wait_for_work(encoder_job **j, recode_batch **pages) {
    *j = NULL;
    *pages = NULL;
    pthread_mutex_lock(&desk.lock);
    while (desk.threads <= desk.wanted && desk.uncounted.count == 0 && !take_work(j, pages))
        pthread_cond_wait(&desk.filled, &desk.lock);
    bool wanted = *j || *pages || desk.threads <= desk.wanted;
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

static void encode(encoder_job *j, codec_workspace *work, bool ready) {
    for (uint32_t i = 0; ready && i < j->batch.count; i++) {
        young_batch_encode(&j->batch, i, work);
        count_all();
    }
    if (ready) workspace_trim(work);
    encoders_done(j);
}

static void write_anew(recode_batch *b, codec_workspace *work, bool ready) {
    for (uint32_t i = 0; ready && i < b->count; i++) {
        recode_page(b, i, work);
        count_all();
    }
    if (ready) workspace_trim(work);
    pthread_mutex_lock(&desk.lock);
    put(&desk.anew, b);
    pthread_mutex_unlock(&desk.lock);
}

static void *encoder(void *unused) {
    codec_workspace work;
    bool ready = workspace_init(&work, &mem_libc);
    recode_batch *pages;
    (void)unused;
    for (encoder_job *j; wait_for_work(&j, &pages);) {
        count_all();
        if (j) encode(j, &work, ready);
        if (pages) write_anew(pages, &work, ready);
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
        for (encoder_job *j; (j = leave(&desk.waiting)) != NULL;) join(&desk.done, j);
        for (void *b; (b = take(&desk.uncounted)) != NULL;) put(&desk.counted, b);
        for (void *b; (b = take(&desk.pages)) != NULL;) put(&desk.anew, b);
    }
    pthread_mutex_unlock(&desk.lock);
}

/* One more thread, if one is wanted. */
static void start_one(void) {
    if (desk.threads < desk.wanted && thread_start(encoder)) desk.threads++;
}

bool encoders_there(void) {
    pthread_mutex_lock(&desk.lock);
    if (desk.threads == 0) start_one();
    bool any = desk.threads > 0 && desk.wanted > 0;
    pthread_mutex_unlock(&desk.lock);
    return any;
}

void encoders_give(encoder_job *j) {
    pthread_mutex_lock(&desk.lock);
    start_one();
    join(&desk.waiting, j);
    pthread_cond_signal(&desk.filled);
    pthread_mutex_unlock(&desk.lock);
}

encoder_job *encoders_take_waiting(size_t longest, bool *any) {
    pthread_mutex_lock(&desk.lock);
    *any = desk.waiting.first != NULL;
    encoder_job *j = *any && desk.waiting.first->longest <= longest ? leave(&desk.waiting) : NULL;
    pthread_mutex_unlock(&desk.lock);
    return j;
}

encoder_job *encoders_take_done(void) {
    pthread_mutex_lock(&desk.lock);
    encoder_job *j = leave(&desk.done);
    pthread_mutex_unlock(&desk.lock);
    return j;
}

static void give(heap *h, void *b) {
    pthread_mutex_lock(&desk.lock);
    start_one();
    put(h, b);
    pthread_cond_signal(&desk.filled);
    pthread_mutex_unlock(&desk.lock);
}

void encoders_give_uncounted(uncounted_batch *b) {
    give(&desk.uncounted, b);
}

uncounted_batch *encoders_take_counted(void) {
    return locked_take(&desk.counted);
}

void encoders_give_pages(recode_batch *b) {
    give(&desk.pages, b);
}

recode_batch *encoders_take_pages(void) {
    return locked_take(&desk.anew);
}
